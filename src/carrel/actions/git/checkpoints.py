"""Checkpoints: revisions of an agent's files that somebody wanted to find again.

All that is written is a commit already, so a checkpoint adds nothing to the files: it is a record
that names a revision, and a tag in the agent's git repository.
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
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports

LONGEST_NOTE: Final = 500


async def marked(ports: Ports, scope: Scope) -> Mapping[int, Checkpoint]:
    """An agent's checkpoints by revision, of which each has one at most."""
    link = _of_agent(scope)
    found = [
        _checkpoint(one)
        async for one in iter_records(ports, scope.tenant, RecordType.CHECKPOINT, link)
    ]
    return {one.revision: one for one in found}


async def mark(ports: Ports, actor: Actor, scope: Scope, note: str) -> tuple[Checkpoint, bool]:
    """Mark the revision that an agent's files are at: the checkpoint, and whether it is new.

    Where nothing was written since the last one, that stays and no other is made.
    """
    [revision] = await ports.trees.revisions([scope])
    redactor = (await load_rules(ports, actor.tenant)).redactor
    said = redactor.redact(_line(note).encode()).content.decode()
    checkpoint = Checkpoint(revision, ports.clock.now(), actor.name, said)
    id = f"{scope.name}.{revision:012}"
    body = {
        "agentId": scope.name,
        "revision": revision,
        "at": checkpoint.at,
        "by": checkpoint.by,
        "note": said,
    }
    change = RecordChange(
        scope.tenant, RecordType.CHECKPOINT, id, body, expected=0, index_keys=(_of_agent(scope),)
    )
    try:
        await commit_changes(ports, actor.name, "mark a checkpoint", [change])
    except Conflict:
        [known] = await ports.records.get(scope.tenant, RecordType.CHECKPOINT, [id])
        assert known
        return _checkpoint(known), False
    return checkpoint, True


def _checkpoint(record: Record) -> Checkpoint:
    body = record.body
    return Checkpoint(body["revision"], body["at"], body["by"], body["note"])


def _of_agent(scope: Scope) -> str:
    """The link under which an agent's checkpoints are listed."""
    return f"agent:{scope.name}"


def _line(note: str) -> str:
    """Raises Malformed."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in note).split())
    if not plain or len(plain) > LONGEST_NOTE:
        raise ValidationError(f"a note has 1 to {LONGEST_NOTE} characters")
    return plain
