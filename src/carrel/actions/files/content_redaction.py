"""Redaction of a file's content before it is stored.

Uploads in parts are redacted by `uploads.py`, files of commands by `sandbox/write_back.py`.
"""

from __future__ import annotations

import asyncio

from carrel.actions.policy.tenant_rules import TenantRules
from carrel.core.identifiers import Scope
from carrel.core.redaction.redactor import RedactionResult
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES


async def redact_content(rules: TenantRules, scope: Scope, content: bytes) -> RedactionResult:
    """Return the content to store. Raises WorkspaceTooLarge."""
    if len(content) > THREAD_THRESHOLD_BYTES:
        return await asyncio.to_thread(rules.redact_file, scope, content)
    return rules.redact_file(scope, content)
