"""Finding something again in all that a caller may read: files, memories, what was said.

The work is bounded, whatever there is: of more agents and files than that the newest are looked at,
and the answer says that it is not complete. Nothing is kept for it, so that no write pays for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import find
from carrel.actions.search import file_search
from carrel.actions.search.file_search import MatchedFile
from carrel.core.access import Actor, Permission
from carrel.core.identifiers import ScopeKind, TimestampMs
from carrel.core.memory.memory import of_agent
from carrel.core.runs import Audience
from carrel.core.search.full_text import query_terms, ranked, searched_text
from carrel.core.search.snippets import fits, passage, snippet
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

MOST: Final = 100
"""Things that one question finds."""
KNOWN: Final = 10_000
"""Agents that are looked at."""
OPENED: Final = 2_000
"""Those of them whose files are."""
ASKED: Final = 500
"""Those whose memories are, and whose sessions."""
HELD: Final = 16 * 2**20
"""Characters of what was found that are held at once."""
_SOME: Final = 8
_OF_EACH: Final = 50
_PAGE: Final = 500

Item = TypeVar("Item")


class SearchScope(StrEnum):
    FILES = "files"
    MEMORIES = "memories"
    SESSIONS = "sessions"


class SearchHit(Struct, frozen=True, kw_only=True):
    """One thing that was found, and where."""

    sort: SearchScope
    title: str
    text: str
    """All of it until it is chosen, and then a snippet."""
    scope: ScopeKind
    at: TimestampMs
    path: str | None = None
    agent: str | None = None
    template: str | None = None
    workspace: str | None = None
    memory: str | None = None
    session: str | None = None
    entry: int | None = None


class SearchResult(Struct, frozen=True):
    items: tuple[SearchHit, ...]
    complete: bool
    """Whether everything was looked at."""


class _HitCollector:
    """What has been found, while there is room for it."""

    def __init__(self) -> None:
        self.items: list[SearchHit] = []
        self.complete = True
        self._held = 0

    def add(self, found: Sequence[SearchHit]) -> None:
        for one in found:
            if self._held + len(one.text) > HELD:
                self.complete = False
                return
            self._held += len(one.text)
            self.items.append(one)

    def first(self, all: Sequence[Item], most: int) -> Sequence[Item]:
        self.complete = self.complete and len(all) <= most
        return all[:most]


async def search(
    ports: Ports, actor: Actor, query: str, sorts: Collection[SearchScope], *, limit: int = 20
) -> SearchResult:
    """What has every word of the query, or words that begin so, best first.

    What the caller may not read is not found. Raises Forbidden.
    """
    actor.require(Permission.WORKSPACE_READ)
    wanted, haul = query_terms(query), _HitCollector()
    if not wanted:
        return SearchResult((), complete=True)
    agents = await _agents(ports, actor, wanted, haul)
    if SearchScope.FILES in sorts:
        await _files(ports, actor, wanted, haul.first(agents, OPENED), haul)
    if SearchScope.MEMORIES in sorts:
        await _memories(ports, actor.tenant, wanted, agents, haul)
    if SearchScope.SESSIONS in sorts:
        await _sessions(ports, actor.tenant, wanted, agents, haul)
    texts = [(place, f"{one.path or ''}\n{one.text}", one.at) for place, one in _numbered(haul)]
    order = await asyncio.to_thread(ranked, query, texts)
    best = [haul.items[place] for place in order[: max(0, min(limit, MOST))]]
    rules = await load_rules(ports, actor.tenant)
    return SearchResult(tuple(_cut(one, wanted, rules.redact_text) for one in best), haul.complete)


def _numbered(haul: _HitCollector) -> Sequence[tuple[int, SearchHit]]:
    return list(enumerate(haul.items))


def _cut(found: SearchHit, wanted: Sequence[str], redacted: Callable[[str], str]) -> SearchHit:
    """Once more without secrets: some may have become known since it was written."""
    return replace(found, text=snippet(wanted, redacted(passage(wanted, found.text))))


async def _agents(
    ports: Ports, actor: Actor, wanted: Sequence[str], haul: _HitCollector
) -> Sequence[Record]:
    """Of whom the caller may know: those of such a name first, then by their last change."""
    if actor.agent is not None:
        return [await find(ports, actor.tenant, RecordType.AGENT, actor.agent)]
    known: list[Record] = []
    while not actor.is_confined and len(known) <= KNOWN:
        after = known[-1].id if known else ""
        some = await ports.records.list(actor.tenant, RecordType.AGENT, after=after, limit=_PAGE)
        known += some
        if len(some) < _PAGE:
            break

    def place(agent: Record) -> tuple[bool, TimestampMs]:
        return fits(wanted, f"{agent.body['name']} {agent.body['slug']}"), agent.updated_at

    return sorted(haul.first(known, KNOWN), key=place, reverse=True)


async def _files(
    ports: Ports, actor: Actor, wanted: Sequence[str], agents: Sequence[Record], haul: _HitCollector
) -> None:
    known = await file_search.candidates(ports, actor, agents)
    taken, all_of_them = file_search.chosen(wanted, known)
    haul.complete = haul.complete and all_of_them
    async for some in file_search.search(ports, wanted, taken):
        haul.add(list(map(_file, some)))


def _file(found: MatchedFile) -> SearchHit:
    scope, path = found.file.scope, found.file.path
    return SearchHit(
        sort=SearchScope.FILES,
        title=path.name,
        text=found.content,
        scope=scope.kind,
        at=found.file.at,
        path=path.text,
        agent=scope.name if scope.kind is ScopeKind.AGENT else None,
        template=scope.name if scope.kind is ScopeKind.TEMPLATE else None,
        workspace=scope.name if scope.kind is ScopeKind.WORKSPACE else None,
    )


async def _memories(
    ports: Ports, tenant: str, wanted: Sequence[str], agents: Sequence[Record], haul: _HitCollector
) -> None:
    counts = await ports.records.count(
        tenant, RecordType.MEMORY, [of_agent(one.id) for one in agents]
    )

    async def of(agent: Record) -> list[SearchHit]:
        found = await ports.records.find(
            tenant, RecordType.MEMORY, of_agent(agent.id), wanted, limit=_OF_EACH
        )
        return [_memory(agent, one) for one in found if fits(wanted, searched_text(one.body))]

    await _from_each(_with_some(agents, counts), of, haul)


def _memory(agent: Record, memory: Record) -> SearchHit:
    return SearchHit(
        sort=SearchScope.MEMORIES,
        title=agent.body["name"],
        text=searched_text(memory.body),
        scope=ScopeKind.AGENT,
        at=memory.created_at,
        agent=agent.id,
        memory=memory.id,
    )


async def _sessions(
    ports: Ports, tenant: str, wanted: Sequence[str], agents: Sequence[Record], haul: _HitCollector
) -> None:
    """What was said where others listened is not found: it is for who asks for that session."""
    counts = await ports.sessions.count(tenant, [one.id for one in agents])

    async def of(agent: Record) -> list[SearchHit]:
        hits = await ports.sessions.search(
            tenant, agent.id, wanted, mode=Audience.MAIN, limit=_OF_EACH
        )
        return [
            SearchHit(
                sort=SearchScope.SESSIONS,
                title=agent.body["name"],
                text=hit.utterance.content,
                scope=ScopeKind.AGENT,
                at=hit.utterance.at,
                agent=agent.id,
                session=hit.session,
                entry=hit.utterance.sequence,
            )
            for hit in hits
        ]

    await _from_each(_with_some(agents, counts), of, haul)


def _with_some(agents: Sequence[Record], counts: Sequence[int]) -> list[Record]:
    return [agent for agent, count in zip(agents, counts, strict=True) if count]


async def _from_each(
    agents: Sequence[Record],
    of: Callable[[Record], Awaitable[list[SearchHit]]],
    haul: _HitCollector,
) -> None:
    asked_of = haul.first(agents, ASKED)
    for at in range(0, len(asked_of), _SOME):
        for found in await asyncio.gather(*map(of, asked_of[at : at + _SOME])):
            haul.add(found)
