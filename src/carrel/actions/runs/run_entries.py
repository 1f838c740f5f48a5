"""Entries that a run writes to its session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from carrel.actions.runs import runs
from carrel.actions.sessions import sessions
from carrel.actions.sessions.new_entries import NewEntry
from carrel.core.access import Actor, Permission
from carrel.core.errors import ValidationError
from carrel.core.runs import RunStatus, next_status
from carrel.core.sessions.session import TranscriptEntry
from carrel.core.store.idempotency import IdempotencyKey
from carrel.ports import Ports


async def append(
    ports: Ports,
    actor: Actor,
    id: str,
    new_entries: Sequence[NewEntry],
    status: RunStatus | None,
    key: IdempotencyKey | None,
) -> tuple[TranscriptEntry, ...]:
    """Append entries to the session of a run that can get this status.

    Raises ValidationError if it has no session, and Conflict if the status is refused.
    """
    actor.require(Permission.WORKSPACE_WRITE)
    run = await runs.get(ports, actor, id)
    if run.session is None:
        raise ValidationError("the run has no session; start it with a sessionId")
    next_status(run, run.status if status is None else status)
    entries = [replace(entry, run=entry.run or run.id) for entry in new_entries]
    return await sessions.append(ports, actor, run.scope.name, run.session, entries, key)
