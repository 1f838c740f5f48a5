"""Access to what is private to agents: filters of listings, and the audit of reads.

The rule itself is `core/agents/private_access.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, Protocol, TypeVar

from carrel.actions.records import Page, commit_changes, iter_records
from carrel.core.access import Actor, CredentialKind
from carrel.core.agents.agent import by_human_index, by_owner_index
from carrel.core.agents.private_access import (
    AUDITED_THINGS,
    READ_PERMISSIONS,
    AgentAccess,
    PrivateResource,
    agent_access,
    is_audited,
    opens_every_agent,
)
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports, request_scope

_BATCH_SIZE: Final = 500
_MAX_BATCHES: Final = 20
"""Batches that one page of a filtered listing reads at most."""
_AUDIT_REASONS: Final = {
    PrivateResource.SESSIONS: "read transcripts of a private agent",
    PrivateResource.MEMORIES: "read memories of a private agent",
}


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=_Identified)


def has_full_access(actor: Actor, agent: Record) -> bool:
    """Return whether the caller may open what is private to the agent."""
    return agent_access(actor, agent) is AgentAccess.FULL


async def find_open_agents(ports: Ports, actor: Actor, ids: Collection[str]) -> Collection[str]:
    """Return the ids of agents whose private things the caller may open, in one query.

    A deleted agent is open only to callers who may open every agent.
    """
    if not ids or opens_every_agent(actor):
        return ids
    if actor.is_confined and actor.kind is not CredentialKind.PERSON:
        return [id for id in ids if id == actor.agent]
    records = await ports.records.get(actor.tenant, RecordType.AGENT, sorted(set(ids)))
    return {agent.id for agent in records if agent and has_full_access(actor, agent)}


async def list_agents_of_person(ports: Ports, actor: Actor) -> list[Record]:
    """List the agents that are paired with the caller or owned by them, by id."""
    person = actor.person
    index_keys = [by_human_index(person), by_owner_index(person)] if person else []
    agents = [
        agent
        for index_key in index_keys
        async for agent in iter_records(ports, actor.tenant, RecordType.AGENT, index_key)
    ]
    by_id = {agent.id: agent for agent in agents}
    return [by_id[id] for id in sorted(by_id)]


async def list_open(
    ports: Ports,
    actor: Actor,
    load_page: Callable[[str, int], Awaitable[Page[Item]]],
    agent_of: Callable[[Item], str | None],
    *,
    cursor: str,
    limit: int,
) -> Page[Item]:
    """List items whose agents the caller may open, and those of no agent.

    `load_page` takes a cursor and a limit; an item's id is the cursor after it. A page may be
    shorter than its limit and have a successor, since the work of one page is bounded.
    """
    if opens_every_agent(actor):
        return await load_page(cursor, limit)
    items: list[Item] = []
    for _ in range(_MAX_BATCHES):
        page = await load_page(cursor, _BATCH_SIZE)
        owners = [agent_of(item) for item in page.items]
        open_agents = await find_open_agents(ports, actor, {id for id in owners if id is not None})
        for item, owner in zip(page.items, owners, strict=True):
            if owner is None or owner in open_agents:
                if len(items) == limit:
                    return Page(tuple(items), items[-1].id)
                items.append(item)
        if page.next is None:
            return Page(tuple(items), None)
        cursor = page.next
    return Page(tuple(items), cursor)


async def audit_reads(
    ports: Ports, actor: Actor, reason: str, agents: Sequence[Record | None]
) -> None:
    """Record that an owner or admin of the tenant reads what is private to other people's agents.

    One entry per request and reason, which names the agents and no content. The read must not
    continue if this fails.
    """
    ids = [agent.id for agent in agents if agent and is_audited(actor, agent)]
    scope = request_scope.current()
    if scope is not None:
        ids = [id for id in ids if (reason, id) not in scope.audited_reads]
    if not ids:
        return
    subjects = [f"{RecordType.AGENT}/{id}" for id in dict.fromkeys(ids)]
    await commit_changes(ports, actor, reason, [], audit_subjects=subjects, tenant=actor.tenant)
    if scope is not None:
        scope.audited_reads |= {(reason, id) for id in ids}


async def authorize_agent_read(
    ports: Ports, actor: Actor, thing: PrivateResource, agent: str
) -> None:
    """Check the permission to read an agent's things, by its id, and record it; see `audit_reads`.

    Also called where a write returns them, since write permission does not imply read. Raises
    Forbidden.
    """
    assert thing in AUDITED_THINGS
    actor.require(READ_PERMISSIONS[thing])
    if actor.person is not None and actor.is_admin:
        agents = await ports.records.get(actor.tenant, RecordType.AGENT, [agent])
        await audit_reads(ports, actor, _AUDIT_REASONS[thing], agents)
