"""Search in everything a caller may read: files, memories and sessions.

The work is bounded: of many agents and files only the newest are searched, and the result says
that it is incomplete. There is no extra index, so writes pay nothing for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.agent_access import audit_reads, has_full_access, list_agents_of_person
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.record_names import load_record_names
from carrel.actions.records import get_record
from carrel.actions.search import file_search
from carrel.actions.search.file_search import MatchedFile
from carrel.actions.search_candidates import find_entries, find_memories
from carrel.core.access import Actor, Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.identifiers import ScopeKind, TimestampMs
from carrel.core.memory.memory import agent_index_key
from carrel.core.runs import Audience
from carrel.core.search.bm25 import NO_STATISTICS, TermStatistics, rank_texts
from carrel.core.search.full_text import parse_query, searched_text
from carrel.core.search.passages import count_matches, find_line, find_match, make_snippet
from carrel.core.sessions.shared_session_visibility import is_visible
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

MAX_HITS: Final = 100
"""Hits per query."""
MAX_AGENTS: Final = 10_000
"""Agents considered per query."""
MAX_AGENTS_FOR_FILES: Final = 2_000
"""Agents whose files are searched."""
MAX_AGENTS_FOR_ENTRIES: Final = 500
"""Agents whose memories and sessions are searched."""
MAX_HELD_CHARS: Final = 16 * 2**20
"""Characters of matching text held in memory."""
_CONCURRENCY: Final = 8
_HITS_PER_AGENT: Final = 50
_PAGE_SIZE: Final = 500
_AUDIT_REASON: Final = "search memories and transcripts of private agents"

Item = TypeVar("Item")


class SearchScope(StrEnum):
    FILES = "files"
    MEMORIES = "memories"
    SESSIONS = "sessions"


class SearchHit(Struct, frozen=True, kw_only=True):
    """Match with its location."""

    kind: SearchScope
    title: str
    text: str
    """Full text while ranking, then a snippet."""
    scope: ScopeKind
    at: TimestampMs
    scope_name: str | None = None
    """Name of the agent, template or workspace that has it."""
    path: str | None = None
    agent: str | None = None
    template: str | None = None
    workspace: str | None = None
    memory: str | None = None
    session: str | None = None
    entry: int | None = None
    offset: int = 0
    """Characters of the text before the match."""


class SearchResult(Struct, frozen=True):
    items: tuple[SearchHit, ...]
    complete: bool
    """Whether everything was searched."""


class _HitCollector:
    """Collects hits up to MAX_HELD_CHARS, and the frequency of each word in the searched texts."""

    def __init__(self) -> None:
        self.items: list[SearchHit] = []
        self.statistics = NO_STATISTICS
        """Of all texts that were searched, except the files among the hits."""
        self.complete = True
        self._chars = 0

    def add(self, hits: Sequence[SearchHit]) -> None:
        for hit in hits:
            if self._chars + len(hit.text) > MAX_HELD_CHARS:
                self.complete = False
                return
            self._chars += len(hit.text)
            self.items.append(hit)

    def count(self, statistics: TermStatistics) -> None:
        """Add the statistics of a collection that was searched."""
        self.statistics = self.statistics.combine(statistics)

    def limit_items(self, items: Sequence[Item], limit: int) -> Sequence[Item]:
        self.complete = self.complete and len(items) <= limit
        return items[:limit]


async def search(
    ports: Ports,
    actor: Actor,
    query: str,
    kinds: Collection[SearchScope],
    *,
    limit: int = 20,
    audience: Audience = Audience.MAIN,
) -> SearchResult:
    """Find what contains words of the query, also as prefixes, best first.

    Function words count only in a query without other words. Content the caller may not read is not
    found; for a shared audience only files that it may see are. Raises Forbidden.
    """
    actor.require(Permission.WORKSPACE_READ)
    terms, collector = parse_query(query).searched_terms, _HitCollector()
    if not terms:
        return SearchResult((), complete=True)
    agents = await _list_agents(ports, actor, terms, collector)
    if SearchScope.FILES in kinds:
        await _search_files(
            *(ports, actor, terms, collector.limit_items(agents, MAX_AGENTS_FOR_FILES), audience),
            collector,
        )
    kinds = kinds if audience is Audience.MAIN else ()
    if SearchScope.MEMORIES in kinds:
        await _search_memories(ports, actor.tenant, query, agents, collector)
    if SearchScope.SESSIONS in kinds:
        await _search_sessions(ports, actor.tenant, query, agents, collector)
    texts = [
        (position, f"{hit.path or ''}\n{hit.text}", hit.at)
        for position, hit in _enumerate_hits(collector)
    ]
    files = sum(hit.kind is SearchScope.FILES for hit in collector.items)
    ranked = await asyncio.to_thread(
        rank_texts, query, texts, collector.statistics, uncounted=files
    )
    best = [collector.items[hit.key] for hit in ranked[: max(0, min(limit, MAX_HITS))]]
    await _audit_hits(ports, actor, best, agents)
    names = await load_record_names(ports, actor.tenant, map(_scope_record, best))
    rules = await load_rules(ports, actor.tenant)
    hits = (_to_snippet(hit, terms, rules.redact_text) for hit in best)
    return SearchResult(
        tuple(replace(hit, scope_name=names.get(_scope_record(hit))) for hit in hits),
        collector.complete,
    )


def _scope_record(hit: SearchHit) -> tuple[str, str]:
    """Type and id of the record that has the content."""
    return hit.scope.value, hit.agent or hit.template or hit.workspace or ""


def _enumerate_hits(collector: _HitCollector) -> Sequence[tuple[int, SearchHit]]:
    return list(enumerate(collector.items))


async def _audit_hits(
    ports: Ports, actor: Actor, hits: Sequence[SearchHit], agents: Sequence[Record]
) -> None:
    """Record that the caller sees memories or transcripts of other people's agents."""
    ids = {hit.agent for hit in hits if hit.kind is not SearchScope.FILES}
    read_agents = [agent for agent in agents if agent.id in ids]
    await audit_reads(ports, actor, _AUDIT_REASON, read_agents)


def _to_snippet(
    hit: SearchHit, terms: Sequence[str], redact_text: Callable[[str], str]
) -> SearchHit:
    """Cut the text to a snippet, redacted with the current rules."""
    line = find_line(terms, hit.text)
    match = find_match(terms, line.text, len(line.text)) or 0
    snippet = make_snippet(terms, redact_text(line.text))
    return replace(hit, text=snippet, offset=line.offset + match)


async def _list_agents(
    ports: Ports, actor: Actor, terms: Sequence[str], collector: _HitCollector
) -> Sequence[Record]:
    """List agents that the caller may open: name matches first, then by last change."""
    if actor.agent is not None:
        agent = await get_record(ports, actor.tenant, RecordType.AGENT, actor.agent)
        return [agent] if has_full_access(actor, agent) else []
    scanned: list[Record] = []
    while not actor.is_confined and len(scanned) <= MAX_AGENTS:
        after = scanned[-1].id if scanned else ""
        batch = await ports.records.list(
            actor.tenant, RecordType.AGENT, after=after, limit=_PAGE_SIZE
        )
        scanned += batch
        if len(batch) < _PAGE_SIZE:
            break
    agents = [
        *(await list_agents_of_person(ports, actor) if len(scanned) > MAX_AGENTS else ()),
        *collector.limit_items(scanned, MAX_AGENTS),
    ]
    by_id = {agent.id: agent for agent in agents if has_full_access(actor, agent)}

    def sort_key(agent: Record) -> tuple[int, TimestampMs]:
        fields = agent_from_record(agent)
        return count_matches(terms, f"{fields.name} {fields.slug}"), agent.updated_at

    return sorted(by_id.values(), key=sort_key, reverse=True)


async def _search_files(
    ports: Ports,
    actor: Actor,
    terms: Sequence[str],
    agents: Sequence[Record],
    audience: Audience,
    collector: _HitCollector,
) -> None:
    candidates = [
        file
        for file in await file_search.list_candidates(ports, actor, agents)
        if is_visible(file.path, audience, is_shared_workspace=file.scope.is_shared_workspace)
    ]
    selected, is_complete = file_search.select_files(terms, candidates)
    collector.complete = collector.complete and is_complete
    other_files = len(selected)
    async for matches in file_search.search(ports, terms, selected):
        collector.add(list(map(_hit_from_file, matches)))
        other_files -= len(matches)
    collector.count(TermStatistics(other_files, {}))


def _hit_from_file(match: MatchedFile) -> SearchHit:
    scope, path = match.file.scope, match.file.path
    return SearchHit(
        kind=SearchScope.FILES,
        title=path.name,
        text=match.content,
        scope=scope.kind,
        at=match.file.updated_at,
        path=path.text,
        agent=scope.name if scope.kind is ScopeKind.AGENT else None,
        template=scope.name if scope.kind is ScopeKind.TEMPLATE else None,
        workspace=scope.name if scope.kind is ScopeKind.WORKSPACE else None,
    )


async def _search_memories(
    ports: Ports,
    tenant: str,
    query: str,
    agents: Sequence[Record],
    collector: _HitCollector,
) -> None:
    counts = await ports.records.count(
        tenant, RecordType.MEMORY, [agent_index_key(item.id) for item in agents]
    )

    async def search_agent(agent: Record) -> list[SearchHit]:
        statistics, memories = await find_memories(
            ports, tenant, agent.id, query, limit=_HITS_PER_AGENT
        )
        collector.count(statistics)
        return [_hit_from_memory(agent, record) for record in memories]

    await _collect(_with_results(agents, counts), search_agent, collector)


def _hit_from_memory(agent: Record, memory: Record) -> SearchHit:
    return SearchHit(
        kind=SearchScope.MEMORIES,
        title=agent_from_record(agent).name,
        text=searched_text(memory.body),
        scope=ScopeKind.AGENT,
        at=memory.created_at,
        agent=agent.id,
        memory=memory.id,
    )


async def _search_sessions(
    ports: Ports,
    tenant: str,
    query: str,
    agents: Sequence[Record],
    collector: _HitCollector,
) -> None:
    """Search private sessions only; shared ones are searched per session."""
    counts = await ports.sessions.count(tenant, [agent_record.id for agent_record in agents])

    async def search_agent(agent: Record) -> list[SearchHit]:
        statistics, hits = await find_entries(
            ports, tenant, agent.id, query, mode=Audience.MAIN, limit=_HITS_PER_AGENT
        )
        collector.count(statistics)
        return [
            SearchHit(
                kind=SearchScope.SESSIONS,
                title=agent_from_record(agent).name,
                text=hit.entry.content,
                scope=ScopeKind.AGENT,
                at=hit.entry.at,
                agent=agent.id,
                session=hit.session,
                entry=hit.entry.sequence,
            )
            for hit in hits
        ]

    await _collect(_with_results(agents, counts), search_agent, collector)


def _with_results(agents: Sequence[Record], counts: Sequence[int]) -> list[Record]:
    return [agent for agent, count in zip(agents, counts, strict=True) if count]


async def _collect(
    agents: Sequence[Record],
    search_agent: Callable[[Record], Awaitable[list[SearchHit]]],
    collector: _HitCollector,
) -> None:
    searched = collector.limit_items(agents, MAX_AGENTS_FOR_ENTRIES)
    for start in range(0, len(searched), _CONCURRENCY):
        for hits in await asyncio.gather(
            *map(search_agent, searched[start : start + _CONCURRENCY])
        ):
            collector.add(hits)
