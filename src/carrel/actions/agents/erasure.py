"""Deletes all that belongs to a deleted agent."""

from __future__ import annotations

from typing import Final

from carrel.actions.catalog.follower import error_fields
from carrel.actions.deleted_bytes import remove_deleted_bytes
from carrel.actions.idempotency import delete_responses
from carrel.actions.memory.cleanup import delete_agent_records
from carrel.actions.records import iter_records
from carrel.actions.sessions.erasure import delete_all_sessions, erase_session, forget_erasure
from carrel.core.access import Actor
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.items import agent_items_scope
from carrel.core.pending_erasure import PendingErasure
from carrel.core.store.record import RecordType, decode_body
from carrel.ports import Ports
from carrel.ports.logging import get_logger

AUTHOR: Final = "carrel"
_log = get_logger("carrel")


async def erase_agent(
    ports: Ports, author: Actor | str, tenant: str, erasure: PendingErasure
) -> None:
    """Erase a deleted agent's sessions, memory, approvals, runs, files, responses and git history.

    If interrupted, `finish_erasures` repeats it.
    """
    id = erasure.agent
    await delete_all_sessions(ports, tenant, erasure)
    await delete_agent_records(ports, author, tenant, id)
    scope = Scope(tenant, ScopeKind.AGENT, id)
    if ports.repositories is not None:
        await ports.repositories.delete(scope)
    await ports.erasure.erase_scopes([scope, agent_items_scope(tenant, id)], ports.clock.now())
    await delete_responses(ports, tenant, (id,), erasure.slug or None)
    await remove_deleted_bytes(ports)


async def finish_erasures(ports: Ports) -> int:
    """Finish interrupted deletions of sessions and agents; return how many.

    One that fails is logged and tried again the next time.
    """
    finished = 0
    async for record in iter_records(ports, "", RecordType.ERASURE):
        erasure = decode_body(record, PendingErasure)
        try:
            if erasure.session is None:
                await erase_agent(ports, AUTHOR, record.tenant, erasure)
            else:
                await erase_session(ports, record.tenant, erasure, erasure.session)
            await forget_erasure(ports, record.tenant, record.id)
            finished += 1
        except Exception as problem:
            fields = error_fields(problem)
            _log.error("erasure failed", tenant=record.tenant, agent=erasure.agent, **fields)
    return finished


async def erase_orphans(ports: Ports) -> int:
    """Erase what is left of deleted agents without a pending erasure; return their number."""
    orphans = await ports.erasure.find_orphans()
    for tenant, agent in orphans:
        await erase_agent(ports, AUTHOR, tenant, PendingErasure(agent=agent))
    return len(orphans)
