"""Which events a caller may see: those of private agents are for their people."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from msgspec import Struct

from carrel.actions.accounts.credentials import reload_actor
from carrel.actions.agent_access import find_open_agents
from carrel.core.access import Actor
from carrel.core.agents.private_access import opens_every_agent
from carrel.core.errors import Unauthenticated
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.items import agent_of_items_scope, is_person_items_scope, person_items_scope
from carrel.core.memory.memory import memory_from_record
from carrel.core.store.event import RECORD_CHANGED, Event
from carrel.core.store.record import Record, RecordType, decode_body
from carrel.ports import Ports

Batch = tuple[Event, ...]
Batches = AsyncGenerator[Batch, None]
"""The consumer must close it unless it reads to the end."""

_RECORDS_OF_AGENTS: Final = (RecordType.MEMORY, RecordType.DREAM)
_UNKNOWN_AGENT: Final = ""
"""Agent of a deleted record: open only to callers who may open every agent."""


class _DreamAgent(Struct, frozen=True):
    """Agent of a dream; the record of a dream schedule lacks it and has the agent's id."""

    agent: str = ""


async def visible_to(ports: Ports, actor: Actor, batches: Batches) -> Batches:
    """Yield the events that the caller may see now; end with the caller's credential."""
    async with aclosing(batches):
        async for batch in batches:
            try:
                current = await reload_actor(ports, actor)
            except Unauthenticated:
                return
            if visible := await select_visible(ports, current, batch):
                yield visible


async def select_visible(ports: Ports, actor: Actor, batch: Batch) -> Batch:
    """Select the events that the caller may see, in at most three queries.

    Events of a private agent name its paths, runs, tools and memories; those of a person's items
    name their keys.
    """
    if opens_every_agent(actor):
        return batch
    agents_of_records = await _find_agents_of_records(ports, actor.tenant, batch)
    agents = [_find_agent(event, agents_of_records) for event in batch]
    open_agents = await find_open_agents(ports, actor, {id for id in agents if id})
    return tuple(
        event
        for event, agent in zip(batch, agents, strict=True)
        if _sees_scope(actor, event.scope) and (agent is None or agent in open_agents)
    )


def _sees_scope(actor: Actor, scope: Scope | None) -> bool:
    if scope is None or not is_person_items_scope(scope):
        return True
    return bool(actor.person and scope == person_items_scope(actor.tenant, actor.person))


def _find_agent(event: Event, agents_of_records: Mapping[str, str]) -> str | None:
    """Id of the agent that an event is private to; None if it concerns none."""
    if event.scope is not None and event.scope.kind is ScopeKind.AGENT:
        return event.scope.name
    if event.scope is not None:
        return agent_of_items_scope(event.scope)
    if _is_of_agent(event):
        return agents_of_records.get(event.payload["id"], _UNKNOWN_AGENT)
    agent: str | None = event.payload.get("agentId")
    return agent


def _is_of_agent(event: Event) -> bool:
    """Whether the event tells of a record that belongs to an agent."""
    return event.type == RECORD_CHANGED and event.payload["noun"] in _RECORDS_OF_AGENTS


async def _find_agents_of_records(
    ports: Ports, tenant: str, batch: Sequence[Event]
) -> Mapping[str, str]:
    """Agents of the changed memories and dreams that still exist, by id of the record."""
    agents: dict[str, str] = {}
    for record_type in _RECORDS_OF_AGENTS:
        ids = {
            event.payload["id"]
            for event in batch
            if _is_of_agent(event) and event.payload["noun"] == record_type
        }
        records = await ports.records.get(tenant, record_type, sorted(ids)) if ids else ()
        agents |= {record.id: _agent_of_record(record) for record in records if record}
    return agents


def _agent_of_record(record: Record) -> str:
    if record.type is RecordType.MEMORY:
        return memory_from_record(record).agent
    return decode_body(record, _DreamAgent).agent or record.id
