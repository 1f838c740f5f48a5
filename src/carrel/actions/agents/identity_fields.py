"""What an agent says of itself in IDENTITY.md, one field at a time."""

from __future__ import annotations

from carrel.actions.files.rewrite import RewriteOutcome, rewrite
from carrel.core.access import Actor
from carrel.core.agents.identity_fields import FIELDS, with_field
from carrel.core.agents.identity_name import IDENTITY
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Stack
from carrel.ports import Ports


async def update_field(
    ports: Ports, actor: Actor, stack: Stack, field: str, value: str
) -> RewriteOutcome:
    """Change one field of an agent, and no other byte; what it inherits becomes its own by that.

    UNFIT where the agent has no IDENTITY.md, or one without that line. Raises Malformed for a field
    that is none, Forbidden, Busy.
    """
    if field not in FIELDS:
        raise ValidationError(f"field is one of {', '.join(FIELDS)}")

    async def change(text: bytes | None) -> bytes | None:
        return None if text is None else with_field(text, field, value)

    return await rewrite(ports, actor, stack, IDENTITY, change, f"say the {field} of the agent")
