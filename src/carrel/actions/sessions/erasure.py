"""Deletes sessions without a trace: entries, index, files and approvals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from carrel.actions.idempotency import delete_session_responses
from carrel.actions.records import commit_changes, get_by_id_or_slug, iter_records
from carrel.core.access import Actor, Permission
from carrel.core.agents.agent import agent_config
from carrel.core.approvals import approval_from_record, approval_index_key
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.sessions.session import Session
from carrel.core.sessions.session_ids import parse_session_id
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports

_BATCH_SIZE: Final = 500


async def delete_session(
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    idempotency_key: IdempotencyKey | None = None,
) -> None:
    """Delete a session with its entries, index, file, approvals and responses. Raises NotFound.

    The audit names the session. If interrupted, it can be repeated. The commit marks the key with
    the time of the session's start.
    """
    actor.require(Permission.TENANT_ADMIN)
    owner = await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, agent)
    session = await _find_session(ports, owner, id)
    approvals = iter_records(
        ports, owner.tenant, RecordType.APPROVAL, approval_index_key(agent=owner.id)
    )
    changes = [
        RecordChange(record.tenant, record.type, record.id, None)
        async for record in approvals
        if approval_from_record(record).session == session.id
    ]
    subjects = (f"session/{session.id}", f"{RecordType.AGENT}/{owner.id}")
    numbers = (session.started_at,)
    await commit_changes(
        ports,
        actor,
        "delete a session",
        changes,
        idempotency_key=idempotency_key and replace(idempotency_key, result_numbers=numbers),
        audit_subjects=subjects,
        tenant=owner.tenant,
    )
    await _erase(ports, owner, session)


async def finish_deletion(
    ports: Ports, actor: Actor, agent: str, id: str, started_at: TimestampMs
) -> None:
    """Complete a deletion that may have been interrupted; a later session of this id stays."""
    actor.require(Permission.TENANT_ADMIN)
    with suppress(NotFound):
        owner = await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, agent)
        session = await _find_session(ports, owner, id)
        if session.started_at == started_at:
            await _erase(ports, owner, session)


async def _erase(ports: Ports, owner: Record, session: Session) -> None:
    while not await _delete(ports, owner, [session]):
        session = await _find_session(ports, owner, session.id)
    await delete_session_responses(ports, owner.tenant, session.id)
    await ports.erasure.scrub()


async def delete_all_sessions(ports: Ports, tenant: str, agent: str, record: Record | None) -> None:
    """Delete all sessions of an agent; files too if its record is known."""
    while batch := await ports.sessions.list(tenant, agent, limit=_BATCH_SIZE):
        await _delete(ports, record, batch)


async def _find_session(ports: Ports, agent: Record, id: str) -> Session:
    try:
        [session] = await ports.sessions.get(agent.tenant, agent.id, [parse_session_id(id)])
    except ValidationError:
        session = None
    if session is None:
        raise NotFound("no such session")
    return session


async def _delete(ports: Ports, agent: Record | None, sessions: Sequence[Session]) -> int:
    """Delete rows, then files; return how many sessions had no new entries and were deleted."""
    deleted = await ports.sessions.delete(sessions)
    folder = agent and agent_config(agent).transcripts_dir
    if agent and folder and ports.transcript_files:
        with suppress(ValidationError):
            owner = f"{agent.tenant}/{agent.id}"
            await ports.transcript_files.delete(folder, owner, sessions)
    return deleted
