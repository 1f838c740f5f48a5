"""What waits for people: pinned updates, calls that ask first, dreams to be looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.overlay.pending_updates import Awaited, pending_pin_updates
from carrel.actions.records import iter_records
from carrel.core.access import Actor
from carrel.core.agents.agent import by_human_index, by_owner_index
from carrel.core.approvals import Approval, approval_of, link_of
from carrel.core.approvals import ApprovalStatus as Asked
from carrel.core.errors import Forbidden
from carrel.core.memory.dream_records import PROPOSALS, Dream, dream_of
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

MOST: Final = 500
"""Of each that are told; all are counted."""
_A_PAGE: Final = 5_000
"""Agents that are looked at together."""


class InboxSection(Struct, frozen=True):
    """What waits of one kind: the first of it, and how much there is."""

    count: int
    pins: tuple[tuple[Record, Awaited], ...] = ()
    approvals: tuple[Approval, ...] = ()
    dreams: tuple[tuple[Record, Dream], ...] = ()


class Inbox(Struct, frozen=True):
    pins: InboxSection
    approvals: InboxSection
    dreams: InboxSection
    templates: Mapping[str, str]
    """The names of those that are spoken of, by id."""


def is_mine(actor: Actor, agent: Record) -> bool:
    """Whether an agent works for the person who asks, or belongs to them."""
    pair = {agent.body.get("humanPairId"), agent.body.get("ownerId")}
    return actor.person is not None and actor.person in pair


async def inbox(ports: Ports, actor: Actor, *, mine: bool = False) -> Inbox:
    """What waits in the tenant, or with the agents of the person who asks. Raises Forbidden."""
    if actor.is_confined:
        raise Forbidden("this credential is confined to one workspace")
    pins = await _pins(ports, actor, mine)
    approvals = await _approvals(ports, actor, mine)
    dreams = await _dreams(ports, actor, mine)
    spoken = [agent.body.get("templateId") for agent, _ in pins.pins]
    ids = sorted({id for id in spoken if id})
    found = await ports.records.get(actor.tenant, RecordType.TEMPLATE, ids) if ids else ()
    names = {one.id: str(one.body["name"]) for one in found if one}
    return Inbox(pins, approvals, dreams, names)


async def _pins(ports: Ports, actor: Actor, mine: bool) -> InboxSection:
    count, first = 0, list[tuple[Record, Awaited]]()
    async for agents in _agents(ports, actor, mine):
        waiting = await pending_pin_updates(ports, actor.tenant, agents)
        for agent, pins in zip(agents, waiting, strict=True):
            count += len(pins)
            first += [(agent, pin) for pin in pins[: MOST - len(first)]]
    return InboxSection(count, pins=tuple(first))


async def _agents(ports: Ports, actor: Actor, mine: bool) -> AsyncIterator[Sequence[Record]]:
    """All of the tenant, some thousands at once; or those of the person who asks, all together."""
    if mine:
        person = actor.person
        index_keys = [by_human_index(person), by_owner_index(person)] if person else []
        own = [
            one
            for link in index_keys
            async for one in iter_records(ports, actor.tenant, RecordType.AGENT, link)
        ]
        known = {agent.id: agent for agent in own}
        yield [known[id] for id in sorted(known)]
        return
    after = ""
    while found := await ports.records.list(
        actor.tenant, RecordType.AGENT, after=after, limit=_A_PAGE
    ):
        yield found
        after = found[-1].id


async def _approvals(ports: Ports, actor: Actor, mine: bool) -> InboxSection:
    link = link_of(status=Asked.REQUESTED)
    count, first = 0, list[Approval]()
    async for agents, records in _waiting(ports, actor, RecordType.APPROVAL, link):
        known = [one for one in records if not mine or _of(actor, agents, one)]
        count += len(known)
        first += [approval_of(one) for one in known[: MOST - len(first)]]
    return InboxSection(count, approvals=tuple(first))


async def _dreams(ports: Ports, actor: Actor, mine: bool) -> InboxSection:
    count, first = 0, list[tuple[Record, Dream]]()
    async for agents, records in _waiting(ports, actor, RecordType.DREAM, PROPOSALS):
        known = [one for one in records if one.body["agent"] in agents]
        known = [one for one in known if not mine or _of(actor, agents, one)]
        count += len(known)
        some = known[: MOST - len(first)]
        first += [(agents[one.body["agent"]], dream_of(one)) for one in some]
    return InboxSection(count, dreams=tuple(first))


def _of(actor: Actor, agents: Mapping[str, Record], waiting: Record) -> bool:
    agent = agents.get(waiting.body["agent"])
    return agent is not None and is_mine(actor, agent)


async def _waiting(
    ports: Ports, actor: Actor, record_type: RecordType, link: str
) -> AsyncIterator[tuple[Mapping[str, Record], Collection[Record]]]:
    """Records under a link, some hundred at once, with the agents that they are of."""
    after = ""
    while found := await ports.records.list(
        actor.tenant, record_type, link=link, after=after, limit=MOST
    ):
        ids = sorted({str(one.body["agent"]) for one in found})
        agents = await ports.records.get(actor.tenant, RecordType.AGENT, ids)
        yield {agent.id: agent for agent in agents if agent}, found
        after = found[-1].id
