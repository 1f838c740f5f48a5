"""Memory statistics of an agent."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import TimestampMs
from carrel.core.memory.dream_records import schedule_from_record
from carrel.core.memory.memory import agent_index_key, index_memories
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


async def load_stats(ports: Ports, tenant: str, agent: str, now: TimestampMs) -> MemoryStats:
    """Load the statistics of an agent id with five queries."""
    index_keys = [agent_index_key(agent)]
    [memories] = await ports.records.count(tenant, RecordType.MEMORY, index_keys)
    [promoted] = await ports.records.count(tenant, RecordType.PROMOTION, index_keys)
    [schedule] = await ports.records.get(tenant, RecordType.DREAM, [agent])
    recall_counts = await ports.recalls.count_since(tenant, agent, now - _WEEK_MS)
    top_ids = sorted(recall_counts, key=lambda id: (-recall_counts[id], id))[:_MAX_MEMORIES]
    memories_by_id = (
        index_memories(await ports.records.get(tenant, RecordType.MEMORY, top_ids))
        if top_ids
        else {}
    )
    tags: Counter[str] = Counter()
    for id, memory in memories_by_id.items():
        for tag in memory.concepts:
            tags[tag] += recall_counts[id]
    top = sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:_MAX_TAGS]
    return MemoryStats(
        memories,
        promoted,
        schedule_from_record(schedule).last,
        sum(recall_counts.values()),
        tuple(top),
    )
