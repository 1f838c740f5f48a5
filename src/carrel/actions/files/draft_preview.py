"""Preview of an unstored text as an agent would be served it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from carrel.actions.overlay.agent_layers import load_agent_layers
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.placeholders import render_bytes, split_template
from carrel.ports import Ports


class RenderedDraft(Struct, frozen=True):
    """Draft as it would be served."""

    content: bytes
    values: Mapping[str, str]
    """Value of each placeholder in the draft, in text order."""


async def render_draft(ports: Ports, stack: Stack, path: Path, draft: bytes) -> RenderedDraft:
    """Render a draft as an agent's file: redacted, with placeholders replaced.

    Placeholders of pinned files are not replaced; a managed file is rendered as Carrel would write
    it. Raises NotFound, WorkspaceTooLarge, or ValidationError for an invalid path.
    """
    scope = stack[0]
    agent_layers = await load_agent_layers(ports, scope.tenant, scope.name)
    rules = await load_rules(ports, scope.tenant)
    file_class = rules.policy.classes.check_path(path)
    stored = rules.redact_file(scope, draft).content
    if file_class is FileClass.PINNED:
        return RenderedDraft(stored, {})
    variables = agent_layers.resolver.variables
    tokens = dict.fromkeys(segment.token for segment in split_template(stored) if segment.token)
    values = {token: variables.escaped_values[token] for token in tokens}
    return RenderedDraft(render_bytes(stored, variables), values)
