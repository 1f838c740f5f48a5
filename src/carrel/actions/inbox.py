"""Inbox: pinned updates, approvals and proposed dreams that wait for a person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import has_full_access, list_agents_of_person
from carrel.actions.overlay.pending_updates import PendingPin, list_pending_pins
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.private_access import opens_every_agent
from carrel.core.agents.template import template_from_record
from carrel.core.approvals import Approval, ApprovalStatus, approval_from_record, approval_index_key
from carrel.core.errors import Forbidden
from carrel.core.memory.dream_records import PROPOSALS_INDEX_KEY, Dream, dream_from_record
from carrel.core.store.record import Record, RecordType, decode_body
from carrel.ports import Ports

MAX_LISTED: Final = 500
"""Items listed per section; all are counted."""
_AGENT_PAGE_SIZE: Final = 5_000
"""Agents checked for pins per query."""


class InboxSection(Struct, frozen=True):
    """Pending items of one kind: their count and the first of them."""

    count: int
    pins: tuple[tuple[Record, PendingPin], ...] = ()
    approvals: tuple[Approval, ...] = ()
    dreams: tuple[tuple[Record, Dream], ...] = ()


class Inbox(Struct, frozen=True):
    pins: InboxSection
    approvals: InboxSection
    dreams: InboxSection
    templates: Mapping[str, str]
    """Names of the templates of listed agents, by id."""


class _AgentReference(Struct, frozen=True):
    """The field that approvals and dreams have in common."""

    agent: str


def is_callers_agent(actor: Actor, agent: Record) -> bool:
    """Return whether the agent is paired with the caller or owned by them."""
    return agent_from_record(agent).is_of_person(actor.person)


async def load_inbox(ports: Ports, actor: Actor, *, mine: bool = False) -> Inbox:
    """Load the pending items of the tenant or the caller's agents. Raises Forbidden.

    Omits those of agents that the caller may not open.
    """
    if actor.is_confined:
        raise Forbidden("this credential is confined to one workspace")
    pins = await _load_pins(ports, actor, mine)
    approvals = await _load_approvals(ports, actor, mine)
    dreams = await _load_dreams(ports, actor, mine)
    template_ids = [agent_from_record(agent).template_id for agent, _ in pins.pins]
    ids = sorted({id for id in template_ids if id})
    templates = await ports.records.get(actor.tenant, RecordType.TEMPLATE, ids) if ids else ()
    names = {record.id: template_from_record(record).name for record in templates if record}
    return Inbox(pins, approvals, dreams, names)


async def _load_pins(ports: Ports, actor: Actor, mine: bool) -> InboxSection:
    count, first = 0, list[tuple[Record, PendingPin]]()
    async for agents in _iter_agents(ports, actor, mine):
        pins_by_agent = await list_pending_pins(ports, actor.tenant, agents)
        for agent, pins in zip(agents, pins_by_agent, strict=True):
            count += len(pins)
            first += [(agent, pin) for pin in pins[: MAX_LISTED - len(first)]]
    return InboxSection(count, pins=tuple(first))


async def _iter_agents(ports: Ports, actor: Actor, mine: bool) -> AsyncIterator[Sequence[Record]]:
    """Iterate over the tenant's agents in batches, or the caller's in one batch."""
    if mine:
        yield await list_agents_of_person(ports, actor)
        return
    after = ""
    while batch := await ports.records.list(
        actor.tenant, RecordType.AGENT, after=after, limit=_AGENT_PAGE_SIZE
    ):
        yield [agent for agent in batch if has_full_access(actor, agent)]
        after = batch[-1].id


async def _load_approvals(ports: Ports, actor: Actor, mine: bool) -> InboxSection:
    index_key = approval_index_key(status=ApprovalStatus.REQUESTED)
    count, first = 0, list[Approval]()
    async for agents, records in _iter_pending(ports, actor, RecordType.APPROVAL, index_key):
        visible = [record for id, record in records if _is_listed(actor, agents.get(id), mine)]
        count += len(visible)
        first += [approval_from_record(record) for record in visible[: MAX_LISTED - len(first)]]
    return InboxSection(count, approvals=tuple(first))


def _is_listed(actor: Actor, agent: Record | None, mine: bool) -> bool:
    if agent is None:
        return not mine and opens_every_agent(actor)
    return is_callers_agent(actor, agent) if mine else has_full_access(actor, agent)


async def _load_dreams(ports: Ports, actor: Actor, mine: bool) -> InboxSection:
    count, first = 0, list[tuple[Record, Dream]]()
    async for agents, records in _iter_pending(ports, actor, RecordType.DREAM, PROPOSALS_INDEX_KEY):
        dreams = [(agents[id], record) for id, record in records if id in agents]
        visible = [item for item in dreams if _is_listed(actor, item[0], mine)]
        count += len(visible)
        listed = visible[: MAX_LISTED - len(first)]
        first += [(agent, dream_from_record(record)) for agent, record in listed]
    return InboxSection(count, dreams=tuple(first))


async def _iter_pending(
    ports: Ports, actor: Actor, record_type: RecordType, index_key: str
) -> AsyncIterator[tuple[Mapping[str, Record], Sequence[tuple[str, Record]]]]:
    """Iterate over batches: agents by id, and each record with the id of its agent."""
    after = ""
    while batch := await ports.records.list(
        actor.tenant, record_type, index_key=index_key, after=after, limit=MAX_LISTED
    ):
        owners = [decode_body(record, _AgentReference).agent for record in batch]
        agents = await ports.records.get(actor.tenant, RecordType.AGENT, sorted(set(owners)))
        yield (
            {agent.id: agent for agent in agents if agent},
            list(zip(owners, batch, strict=True)),
        )
        after = batch[-1].id
