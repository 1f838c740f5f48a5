"""Removal of a session's last entry, or of all its entries."""

from __future__ import annotations

from carrel.actions.approvals import approvals
from carrel.actions.records import commit_changes
from carrel.actions.sessions import sessions
from carrel.core.access import Actor
from carrel.core.errors import Conflict
from carrel.core.sessions.session import EntryRemoval, RemovedEntries, Session, TranscriptEntry
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import RecordType
from carrel.ports import Ports


async def pop(
    ports: Ports, actor: Actor, agent: str, id: str, key: IdempotencyKey | None = None
) -> TranscriptEntry | None:
    """Remove the last entry and return it; None if there is none.

    Its number is not used again. The audit names the session. Raises NotFound, and Conflict if the
    session is closed.
    """
    session = await sessions.get_transcript(ports, actor, agent, id)
    return (await _remove(ports, actor, session, key, is_complete=False)).last


async def clear(
    ports: Ports, actor: Actor, agent: str, id: str, key: IdempotencyKey | None = None
) -> Session:
    """Remove all entries, with their index, and return the session; see `pop`.

    The transcript file follows, and pending approvals of the session are cancelled.
    """
    session = await sessions.get(ports, actor, agent, id)
    removed = await _remove(ports, actor, session, key, is_complete=True)
    await approvals.supersede(ports, session.tenant, session.agent, session.id)
    await ports.erasure.scrub()
    return removed.session


async def _remove(
    ports: Ports, actor: Actor, session: Session, key: IdempotencyKey | None, *, is_complete: bool
) -> RemovedEntries:
    if session.entry_count:
        reason = "remove all entries of a session" if is_complete else "remove the last entry"
        subjects = (f"session/{session.id}", f"{RecordType.AGENT}/{session.agent}")
        await commit_changes(
            ports, actor, reason, [], audit_subjects=subjects, tenant=session.tenant
        )
    removal = EntryRemoval(
        *(session.tenant, session.agent, session.id, ports.clock.now(), is_complete), key
    )
    [removed] = await ports.sessions.remove([removal])
    if removed is None:
        await sessions.get(ports, actor, session.agent, session.id)
        raise Conflict("the session is closed")
    return removed
