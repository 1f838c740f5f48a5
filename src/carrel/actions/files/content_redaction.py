"""Redaction of the contents of files before they are stored.

Uploads in parts are redacted by `uploads.py`, files of commands by `sandbox/write_back.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from carrel.actions.policy.tenant_rules import TenantRules
from carrel.core.errors import Refusal
from carrel.core.identifiers import Scope
from carrel.core.redaction.redactor import RedactionResult
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES


async def redact_content(rules: TenantRules, scope: Scope, content: bytes) -> RedactionResult:
    """Return the content to store. Raises WorkspaceTooLarge."""
    if len(content) > THREAD_THRESHOLD_BYTES:
        return await asyncio.to_thread(rules.redact_file, scope, content)
    return rules.redact_file(scope, content)


async def redact_contents(
    rules: TenantRules, scope: Scope, contents: Sequence[bytes]
) -> Sequence[RedactionResult | Refusal]:
    """Return the contents to store, or why one cannot be."""
    if sum(map(len, contents)) > THREAD_THRESHOLD_BYTES:
        return await asyncio.to_thread(rules.redact_files, scope, contents)
    return rules.redact_files(scope, contents)
