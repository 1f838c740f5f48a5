"""Finds the memories and session entries of an agent to be ranked for a query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from carrel.core.memory.memory import agent_index_key
from carrel.core.runs import Audience
from carrel.core.search.bm25 import TermStatistics, TermWeight, select_terms
from carrel.core.search.full_text import parse_query
from carrel.core.sessions.session import TranscriptHit
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

MAX_CANDIDATES: Final = 200
"""Texts loaded for ranking."""


async def find_memories(
    ports: Ports, tenant: str, agent: str, query: str, *, limit: int = MAX_CANDIDATES
) -> tuple[TermStatistics, tuple[Record, ...]]:
    """Memories with the rarest terms of the query, and how many have each term."""
    collection = (tenant, RecordType.MEMORY, agent_index_key(agent))
    statistics, terms = await _select(
        query, lambda counted: ports.records.count_terms(*collection, counted)
    )
    return statistics, await ports.records.find(*collection, terms, limit=limit)


async def find_entries(
    ports: Ports,
    tenant: str,
    agent: str,
    query: str,
    *,
    mode: Audience | None = None,
    limit: int = MAX_CANDIDATES,
) -> tuple[TermStatistics, tuple[TranscriptHit, ...]]:
    """Session entries with the rarest terms of the query, and how many have each term."""
    statistics, terms = await _select(
        query, lambda counted: ports.sessions.count_terms(tenant, agent, counted)
    )
    return statistics, await ports.sessions.search(tenant, agent, terms, mode=mode, limit=limit)


async def _select(
    query: str, count_terms: Callable[[Sequence[str]], Awaitable[TermStatistics]]
) -> tuple[TermStatistics, list[TermWeight]]:
    """Count function words, which are in most texts, only if there is no other term."""
    statistics, parsed = TermStatistics(0, {}), parse_query(query)
    for terms in filter(None, (parsed.content, parsed.function)):
        statistics = await count_terms(terms)
        if selected := select_terms(parsed, statistics):
            return statistics, selected
    return statistics, []
