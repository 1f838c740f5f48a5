"""Approvals and dreams that wait for an answer: their number and pages of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import has_full_access, list_agents_of_person
from carrel.actions.records import Page
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.private_access import opens_every_agent
from carrel.core.approvals import ApprovalStatus, approval_index_key
from carrel.core.memory.dream_records import PROPOSALS_INDEX_KEY, proposed_index_key
from carrel.core.store.record import Record, RecordType, decode_body
from carrel.ports import Ports

_BATCH_SIZE: Final = 500
_MAX_BATCHES: Final = 20
"""Batches of records that one page reads at most."""
_INDEX_KEYS: Final = {
    RecordType.APPROVAL: approval_index_key(status=ApprovalStatus.REQUESTED),
    RecordType.DREAM: PROPOSALS_INDEX_KEY,
}


class WaitingRecord(Struct, frozen=True):
    """An approval or a dream with its agent, None if the agent was deleted."""

    record: Record
    agent: Record | None

    @property
    def id(self) -> str:
        return self.record.id


class InboxCounts(Struct, frozen=True):
    """What waits, by kind."""

    pins: int
    approvals: int
    dreams: int


class _AgentReference(Struct, frozen=True):
    """The field that approvals and dreams have in common."""

    agent: str


async def count_waiting(ports: Ports, actor: Actor, type: RecordType, *, mine: bool) -> int:
    """Count what waits and the caller may see; without reading it if that is everything.

    For callers who may open only some agents, reads as much as a page of `list_waiting` does: they
    are not told of more.
    """
    if mine:
        agents = await list_agents_of_person(ports, actor)
        keys = [_index_key_of_agent(type, agent.id) for agent in agents]
        return sum(await ports.records.count(actor.tenant, type, keys)) if keys else 0
    if opens_every_agent(actor):
        [count] = await ports.records.count(actor.tenant, type, [_INDEX_KEYS[type]])
        return count
    count = read_count = 0
    async for visible, _ in _iter_batches(ports, actor, type, "", mine=False):
        count, read_count = count + len(visible), read_count + 1
        if read_count == _MAX_BATCHES:
            break
    return count


async def list_waiting(
    ports: Ports,
    actor: Actor,
    type: RecordType,
    *,
    mine: bool = False,
    cursor: str = "",
    limit: int = 100,
) -> Page[WaitingRecord]:
    """List what waits, oldest first; pages as those of `list_waiting_pins`."""
    if mine and not await count_waiting(ports, actor, type, mine=True):
        return Page((), None)
    listed: list[WaitingRecord] = []
    read_count = 0
    async for visible, last in _iter_batches(ports, actor, type, cursor, mine=mine):
        listed += visible
        if len(listed) > limit:
            return Page(tuple(listed[:limit]), listed[limit - 1].id)
        read_count += 1
        if read_count == _MAX_BATCHES:
            return Page(tuple(listed), last)
    return Page(tuple(listed), None)


def _index_key_of_agent(type: RecordType, agent: str) -> str:
    """Index key of what waits of one agent."""
    if type is RecordType.DREAM:
        return proposed_index_key(agent)
    return approval_index_key(agent=agent, status=ApprovalStatus.REQUESTED)


async def _iter_batches(
    ports: Ports, actor: Actor, type: RecordType, after: str, *, mine: bool
) -> AsyncIterator[tuple[Sequence[WaitingRecord], str]]:
    """Iterate over what the caller may see of each batch, and the batch's last id."""
    while batch := await ports.records.list(
        actor.tenant, type, index_key=_INDEX_KEYS[type], after=after, limit=_BATCH_SIZE
    ):
        owners = [decode_body(record, _AgentReference).agent for record in batch]
        agent_records = await ports.records.get(actor.tenant, RecordType.AGENT, sorted(set(owners)))
        agents = {agent.id: agent for agent in agent_records if agent}
        items = [
            WaitingRecord(record, agents.get(id)) for id, record in zip(owners, batch, strict=True)
        ]
        after = batch[-1].id
        yield [item for item in items if _is_listed(actor, item.agent, mine)], after


def _is_listed(actor: Actor, agent: Record | None, mine: bool) -> bool:
    if agent is None:
        return not mine and opens_every_agent(actor)
    if mine:
        return agent_from_record(agent).is_of_person(actor.person)
    return has_full_access(actor, agent)
