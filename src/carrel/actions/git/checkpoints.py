"""Checkpoints: named revisions of an agent's files.

Every write is a commit already, so a checkpoint does not change files: it is a record that
names a revision, and a tag in the agent's git repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import commit_changes, iter_records
from carrel.core.access import Actor
from carrel.core.errors import Conflict, ValidationError
from carrel.core.git.log import Checkpoint
from carrel.core.identifiers import Scope
from carrel.core.store.record import RecordChange, RecordType, decode_body, encode_body
from carrel.ports import Ports

MAX_NOTE_LENGTH: Final = 500


async def load_checkpoints(ports: Ports, scope: Scope) -> Mapping[int, Checkpoint]:
    """Load an agent's checkpoints by revision; each revision has at most one."""
    index_key = _by_agent_index(scope)
    checkpoints = [
        decode_body(item, Checkpoint)
        async for item in iter_records(ports, scope.tenant, RecordType.CHECKPOINT, index_key)
    ]
    return {item.revision: item for item in checkpoints}


async def create_checkpoint(
    ports: Ports, actor: Actor, scope: Scope, note: str
) -> tuple[Checkpoint, bool]:
    """Create a checkpoint of the current revision; return it and whether it is new.

    If nothing was written since the last checkpoint, that one is returned.
    """
    [revision] = await ports.trees.revisions([scope])
    redactor = (await load_rules(ports, actor.tenant)).redactor
    redacted_note = redactor.redact(_normalize_note(note).encode()).content.decode()
    checkpoint = Checkpoint(revision, ports.clock.now(), actor.name, redacted_note)
    id = f"{scope.name}.{revision:012}"
    body = {**encode_body(checkpoint), "agentId": scope.name}
    change = RecordChange(
        scope.tenant,
        RecordType.CHECKPOINT,
        id,
        body,
        expected=0,
        index_keys=(_by_agent_index(scope),),
    )
    try:
        await commit_changes(ports, actor, "create a checkpoint", [change])
    except Conflict:
        [existing] = await ports.records.get(scope.tenant, RecordType.CHECKPOINT, [id])
        assert existing
        return decode_body(existing, Checkpoint), False
    return checkpoint, True


def _by_agent_index(scope: Scope) -> str:
    """Index key of an agent's checkpoints."""
    return f"agent:{scope.name}"


def _normalize_note(note: str) -> str:
    """Collapse a note to one printable line. Raises ValidationError."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in note).split())
    if not plain or len(plain) > MAX_NOTE_LENGTH:
        raise ValidationError(f"note must have 1 to {MAX_NOTE_LENGTH} characters")
    return plain
