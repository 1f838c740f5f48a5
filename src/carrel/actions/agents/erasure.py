"""Deletes all that belongs to a deleted agent."""

from __future__ import annotations

from carrel.actions.deleted_bytes import remove_deleted_bytes
from carrel.actions.idempotency import delete_responses
from carrel.actions.memory.cleanup import delete_agent_records
from carrel.actions.sessions.erasure import delete_all_sessions
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.items import agent_items_scope
from carrel.core.store.record import Record
from carrel.ports import Ports


async def erase_agent(
    ports: Ports, author: Actor | str, tenant: str, id: str, record: Record | None = None
) -> None:
    """Erase a deleted agent's sessions, memory, approvals, runs, files, responses and git history.

    If interrupted, garbage collection continues it, but does not know the folder of transcript
    files and the slug without the agent's record.
    """
    await delete_all_sessions(ports, tenant, id, record)
    await delete_agent_records(ports, author, tenant, id)
    scope = Scope(tenant, ScopeKind.AGENT, id)
    if ports.repositories is not None:
        await ports.repositories.delete(scope)
    await ports.erasure.erase_scopes([scope, agent_items_scope(tenant, id)], ports.clock.now())
    slug = None if record is None else agent_from_record(record).slug
    await delete_responses(ports, tenant, (id,), slug)
    await remove_deleted_bytes(ports)


async def erase_orphans(ports: Ports) -> int:
    """Erase what interrupted deletions of agents left; return the number of agents."""
    orphans = await ports.erasure.find_orphans()
    for tenant, agent in orphans:
        await erase_agent(ports, "carrel", tenant, agent)
    return len(orphans)
