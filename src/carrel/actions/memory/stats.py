"""How much an agent remembers, and what has been on its mind of late."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import TimestampMs
from carrel.core.memory.dream_records import schedule_of
from carrel.core.memory.memory import by_id, of_agent
from carrel.core.store.record import RecordType
from carrel.ports import Ports

_WEEK: Final = 7 * 86_400_000
_MOST_TAGS: Final = 10
_LOOKED_AT: Final = 200
"""Memories whose tags are counted: those that came up most."""


class MemoryStats(Struct, frozen=True):
    memories: int
    promoted: int
    last_dream: TimestampMs | None
    """When it dreamed last, whether that promoted anything or not."""
    recalls_7d: int
    top_concepts_7d: tuple[tuple[str, int], ...]
    """Tags of what came up, each as often as it did; most first, then by the alphabet."""


async def stats(ports: Ports, tenant: str, agent: str, now: TimestampMs) -> MemoryStats:
    """In five questions, however much there is. Of an agent by its id."""
    link = [of_agent(agent)]
    [memories] = await ports.records.count(tenant, RecordType.MEMORY, link)
    [promoted] = await ports.records.count(tenant, RecordType.PROMOTION, link)
    [rest] = await ports.records.get(tenant, RecordType.DREAM, [agent])
    lately = await ports.recalls.since(tenant, agent, now - _WEEK)
    most = sorted(lately, key=lambda id: (-lately[id], id))[:_LOOKED_AT]
    known = by_id(await ports.records.get(tenant, RecordType.MEMORY, most)) if most else {}
    tags: Counter[str] = Counter()
    for id, memory in known.items():
        for tag in memory.concepts:
            tags[tag] += lately[id]
    top = sorted(tags.items(), key=lambda one: (-one[1], one[0]))[:_MOST_TAGS]
    return MemoryStats(memories, promoted, schedule_of(rest).last, sum(lately.values()), tuple(top))
