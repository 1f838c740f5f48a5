"""Deletes sessions without a trace: entries, index, files and approvals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from carrel.actions.idempotency import delete_session_responses
from carrel.actions.records import commit_changes, get_by_id_or_slug, iter_records
from carrel.core.access import Actor, Permission
from carrel.core.approvals import approval_from_record, approval_index_key
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.pending_erasure import PendingErasure, erasure_change, pending_erasure
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

    The audit names the session. If interrupted, it can be repeated, and a server finishes it when
    it starts. The commit marks the key with the time of the session's start.
    """
    actor.require(Permission.TENANT_ADMIN)
    owner = await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, agent)
    session = await _find_session(ports, owner, id)
    changes = [
        RecordChange(owner.tenant, RecordType.APPROVAL, id, None)
        for id in await _find_approvals(ports, owner, session)
    ]
    erasure, erasure_id = (
        pending_erasure(owner, session.id, session.started_at),
        ports.clock.new_id("ers"),
    )
    changes.append(erasure_change(owner.tenant, erasure_id, erasure))
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
    await erase_session(ports, owner.tenant, erasure, session.id)
    await forget_erasure(ports, owner.tenant, erasure_id)


async def finish_deletion(
    ports: Ports, actor: Actor, agent: str, id: str, started_at: TimestampMs
) -> None:
    """Complete a deletion that may have been interrupted; a later session of this id stays."""
    actor.require(Permission.TENANT_ADMIN)
    with suppress(NotFound):
        owner = await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, agent)
        session = await _find_session(ports, owner, id)
        if session.started_at == started_at:
            erasure = pending_erasure(owner, session.id, started_at)
            await erase_session(ports, owner.tenant, erasure, session.id)


async def erase_session(ports: Ports, tenant: str, erasure: PendingErasure, id: str) -> None:
    """Delete a session's rows, then its file and the responses of its calls; repeatable."""
    while True:
        [session] = await ports.sessions.get(tenant, erasure.agent, [id])
        if session is None or session.started_at != erasure.started_at:
            break
        await ports.sessions.delete([session])
    await _delete_files(ports, tenant, erasure, [id])
    await delete_session_responses(ports, tenant, erasure.agent, id)
    await ports.erasure.scrub()


async def delete_all_sessions(ports: Ports, tenant: str, erasure: PendingErasure) -> None:
    """Delete all sessions of an agent with their files.

    Files before rows, since after an interruption only rows tell which files there were; and once
    more after them, since the mirror may have written one meanwhile.
    """
    while batch := await ports.sessions.list(tenant, erasure.agent, limit=_BATCH_SIZE):
        ids = [session.id for session in batch]
        await _delete_files(ports, tenant, erasure, ids)
        await ports.sessions.delete(batch)
        await _delete_files(ports, tenant, erasure, ids)


async def forget_erasure(ports: Ports, tenant: str, id: str) -> None:
    """Delete the record of a finished deletion."""
    await commit_changes(ports, "carrel", "finish a deletion", [erasure_change(tenant, id, None)])


async def _find_approvals(ports: Ports, agent: Record, session: Session) -> list[str]:
    """Find the approvals of calls that name the session, or no session but a run of it."""
    key = approval_index_key(agent=agent.id)
    ids, by_run = [], defaultdict[str, list[str]](list)
    async for record in iter_records(ports, agent.tenant, RecordType.APPROVAL, key):
        approval = approval_from_record(record)
        if approval.session == session.id:
            ids.append(approval.id)
        elif approval.session is None and approval.run is not None:
            by_run[approval.run].append(approval.id)
    named = sorted(by_run)
    for start in range(0, len(named), _BATCH_SIZE):
        runs = await ports.runs.get(agent.tenant, named[start : start + _BATCH_SIZE])
        for run in runs:
            if run and run.session == session.id and run.scope.name == agent.id:
                ids += by_run[run.id]
    return ids


async def _find_session(ports: Ports, agent: Record, id: str) -> Session:
    try:
        [session] = await ports.sessions.get(agent.tenant, agent.id, [parse_session_id(id)])
    except ValidationError:
        session = None
    if session is None:
        raise NotFound("no such session")
    return session


async def _delete_files(
    ports: Ports, tenant: str, erasure: PendingErasure, ids: Sequence[str]
) -> None:
    folder = erasure.transcripts_folder
    if folder and ports.transcript_files:
        with suppress(ValidationError):
            owner = f"{tenant}/{erasure.agent}"
            await ports.transcript_files.delete(folder, owner, ids)
