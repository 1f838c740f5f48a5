"""Updates single fields of an agent's IDENTITY.md."""

from __future__ import annotations

from carrel.actions.files.rewrite import RewriteOutcome, rewrite
from carrel.core.access import Actor
from carrel.core.agents.identity_fields import EDITABLE_FIELDS, replace_field
from carrel.core.agents.identity_name import IDENTITY_PATH
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Stack
from carrel.ports import Ports


async def update_field(
    ports: Ports, actor: Actor, stack: Stack, field: str, value: str
) -> RewriteOutcome:
    """Change one field of IDENTITY.md and no other byte.

    Creates an override if the file is inherited.
    Returns UNFIT if the agent has no IDENTITY.md, or none with that line. Raises ValidationError
    for an unknown field, Forbidden, Busy.
    """
    if field not in EDITABLE_FIELDS:
        raise ValidationError(f"field is one of {', '.join(EDITABLE_FIELDS)}")

    async def change(text: bytes | None) -> bytes | None:
        return None if text is None else replace_field(text, field, value)

    return await rewrite(ports, actor, stack, IDENTITY_PATH, change, f"set {field} in IDENTITY.md")
