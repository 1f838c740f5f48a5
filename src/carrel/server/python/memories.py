"""What an agent remembers, and its dreams."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from carrel.actions.memory import dreams, memories
from carrel.actions.memory.dreams import DreamReport
from carrel.actions.memory.memories import USUAL, NewMemory
from carrel.core.memory import memory as core
from carrel.core.runs import Audience
from carrel.server.python.caller import CallerContext, Resource, when


@dataclass(frozen=True, slots=True)
class Memory:
    id: str
    content: str
    scope: str
    tags: tuple[str, ...]
    concepts: tuple[str, ...]
    kind: str | None
    created_at: datetime
    promoted_at: datetime | None
    """When a dream took it into MEMORY.md."""
    score: float | None = None
    """Where it came up for a question: 1 for the best, 1/2 for the second."""


@dataclass(frozen=True, slots=True)
class Rejection:
    memory: str
    content: str | None
    score: float
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Dream:
    id: str
    status: str
    started_at: datetime
    candidates: int
    skipped: int
    promoted: tuple[str, ...]
    """The ids of the memories that it promoted, or would."""
    rejected: tuple[Rejection, ...]
    diff: str
    """Of MEMORY.md."""


def _memory(memory: core.Memory, score: float | None = None) -> Memory:
    promoted = None if memory.promoted is None else when(memory.promoted)
    return Memory(
        *(memory.id, memory.content, memory.mode.value, memory.tags, memory.concepts),
        *(memory.kind, when(memory.created), promoted, score),
    )


def _dream(report: DreamReport) -> Dream:
    dream = report.dream
    rejected = tuple(
        Rejection(one.memory, report.contents.get(one.memory), one.score, one.reason, one.why)
        for one in dream.rejected
    )
    promoted = tuple(one.memory for one in dream.promoted)
    return Dream(
        *(dream.id, dream.status.value, when(dream.started), dream.candidates, dream.skipped),
        *(promoted, rejected, report.diff),
    )


class Memories(Resource):
    """What an agent was told to remember."""

    def __init__(self, seat: CallerContext, agent: str) -> None:
        super().__init__(seat)
        self._agent = agent

    async def remember(
        self,
        content: str,
        *,
        tags: Collection[str] = (),
        kind: str | None = None,
        scope: str = Audience.MAIN,
    ) -> Memory:
        """Keep one thing, as one line; what is remembered already is given back as it is."""
        mode = Audience.MAIN if scope == Audience.MAIN else Audience.SHARED
        new = NewMemory(content, tuple(tags), kind, mode)
        kept = await memories.remember(self._ports, self._actor, self._agent, new)
        return _memory(kept.memory)

    async def recall(self, query: str, *, limit: int = USUAL) -> tuple[Memory, ...]:
        """What fits these words, best first; that it came up counts for the agent's dreams."""
        hits = await memories.recall(self._ports, self._actor, self._agent, query, limit=limit)
        return tuple(_memory(hit.memory, hit.score) for hit in hits)

    async def search(self, query: str, *, limit: int = USUAL) -> tuple[Memory, ...]:
        """The same for somebody who only looks."""
        hits = await memories.search(self._ports, self._actor, self._agent, query, limit=limit)
        return tuple(_memory(hit.memory, hit.score) for hit in hits)

    async def list(self) -> tuple[Memory, ...]:
        """All of them, as they were told."""
        found: list[Memory] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await memories.listing(
                self._ports, self._actor, self._agent, cursor=cursor, limit=500
            )
            found += map(_memory, page.items)
            cursor = page.next
        return tuple(found)

    async def get(self, id: str) -> Memory:
        return _memory(await memories.get(self._ports, self._actor, self._agent, id))

    async def forget(self, id: str) -> None:
        """Forget one, and the line of it that a dream wrote into MEMORY.md."""
        await memories.forget(self._ports, self._actor, self._agent, id)


class Dreams(Resource):
    """An agent's dreams."""

    def __init__(self, seat: CallerContext, agent: str) -> None:
        super().__init__(seat)
        self._agent = agent

    async def sweep(self, *, dry_run: bool = False) -> Dream:
        """Dream now, or only say what would be."""
        return _dream(await dreams.sweep(self._ports, self._actor, self._agent, dry_run=dry_run))

    async def list(self) -> tuple[Dream, ...]:
        """The last ones, newest first."""
        found = await dreams.listing(self._ports, self._actor, self._agent)
        return tuple(_dream(DreamReport(dream, {})) for dream in found)

    async def get(self, id: str) -> Dream:
        return _dream(await dreams.get(self._ports, self._actor, self._agent, id))

    async def approve(self, id: str) -> Dream:
        """Let what was proposed land. Raises Stale where MEMORY.md has changed since."""
        return _dream(await dreams.approve(self._ports, self._actor, self._agent, id))

    async def reject(self, id: str, reason: str = "") -> Dream:
        return _dream(await dreams.reject(self._ports, self._actor, self._agent, id, reason))
