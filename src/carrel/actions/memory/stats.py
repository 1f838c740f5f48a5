"""Memory statistics of an agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import authorize_agent_read
from carrel.core.access import Actor
from carrel.core.agents.private_access import PrivateResource
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.dream_records import schedule_from_record
from carrel.core.memory.memory import agent_index_key, index_memories
from carrel.core.runs import Audience
from carrel.core.store.record import RecordType
from carrel.ports import Ports

_WEEK_MS: Final = 7 * 86_400_000
_MAX_TAGS: Final = 10
_MAX_MEMORIES: Final = 200
"""Memories whose tags are counted: the most recalled ones."""


class MemoryStats(Struct, frozen=True):
    memories: int
    promoted: int
    last_dream: TimestampMs | None
    """Time of the last dream, whether or not it promoted anything."""
    recalls_7d: int
    top_concepts_7d: tuple[tuple[str, int], ...]
    """Tags of recalled memories with recall counts, highest first, then by name."""


async def load_stats(
    ports: Ports, actor: Actor, agent: str, mode: Audience = Audience.MAIN
) -> MemoryStats:
    """Load the statistics of an agent id; without tags in a shared session.

    Tags quote memories, so reading them is audited like reading memories.
    """
    tenant, now = actor.tenant, ports.clock.now()
    if mode is Audience.MAIN:
        await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, agent)
    index_keys = [agent_index_key(agent)]
    [memories] = await ports.records.count(tenant, RecordType.MEMORY, index_keys)
    [promoted] = await ports.records.count(tenant, RecordType.PROMOTION, index_keys)
    [schedule] = await ports.records.get(tenant, RecordType.DREAM, [agent])
    recall_counts = await ports.recalls.count_since(tenant, agent, now - _WEEK_MS)
    top = await _count_tags(ports, tenant, recall_counts) if mode is Audience.MAIN else ()
    return MemoryStats(
        memories,
        promoted,
        schedule_from_record(schedule).last,
        sum(recall_counts.values()),
        top,
    )


async def _count_tags(
    ports: Ports, tenant: str, recall_counts: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    top_ids = sorted(recall_counts, key=lambda id: (-recall_counts[id], id))[:_MAX_MEMORIES]
    if not top_ids:
        return ()
    records = await ports.records.get(tenant, RecordType.MEMORY, top_ids)
    tags: Counter[str] = Counter()
    for id, memory in index_memories(records).items():
        for tag in memory.concepts:
            tags[tag] += recall_counts[id]
    return tuple(sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:_MAX_TAGS])
