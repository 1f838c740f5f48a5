"""Search in what an agent knows: its memories and passages of its notes and memory files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.files import files
from carrel.actions.memory import semantic_recall
from carrel.actions.memory.recall_log import record_recalls
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.search import file_search
from carrel.actions.search.file_search import FileCandidate, MatchedFile
from carrel.actions.search_candidates import find_memories
from carrel.core.access import Actor
from carrel.core.agents.private_access import PrivateResource
from carrel.core.errors import Forbidden
from carrel.core.identifiers import Path, Stack, TimestampMs
from carrel.core.memory.memory import Memory, memory_from_record
from carrel.core.memory.memory_passages import (
    PASSAGE_CHARS,
    MemoryPassage,
    is_searched,
    split_passages,
)
from carrel.core.runs import Audience
from carrel.core.search.bm25 import TermStatistics, rank_texts
from carrel.core.search.full_text import contains_phrase, parse_query, searched_text
from carrel.core.search.passages import find_passage
from carrel.core.search.rank_fusion import fuse_rankings
from carrel.ports import Ports

DEFAULT_RESULTS: Final = 10
MAX_RESULTS: Final = 50
_MAX_FUSED: Final = 200
"""Ranked texts that are fused with the nearest memories."""


class PassageHit(Struct, frozen=True):
    """A passage of a file."""

    path: Path
    version: int
    passage: MemoryPassage


class KnowledgeHit(Struct, frozen=True):
    """A memory or a passage that answers a query."""

    source: Memory | PassageHit
    text: str
    at: TimestampMs
    score: float = 0.0
    """Share of the query that it answers, from 0 to 1, by the rarity of the words."""


class KnowledgeResult(Struct, frozen=True):
    hits: tuple[KnowledgeHit, ...]
    complete: bool
    """Whether every file was searched."""


async def search_knowledge(
    ports: Ports,
    actor: Actor,
    stack: Stack,
    query: str,
    *,
    limit: int = DEFAULT_RESULTS,
    audience: Audience = Audience.MAIN,
) -> KnowledgeResult:
    """Find memories and passages of files, best first; found memories count as recalled.

    Raises Forbidden in a shared session.
    """
    if audience is not Audience.MAIN:
        raise Forbidden("memories are not available in a shared session")
    scope = stack[0]
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    rules = await load_rules(ports, actor.tenant)
    terms = parse_query(query).searched_terms
    if not terms:
        return KnowledgeResult((), complete=True)
    passages, complete = await _find_passages(ports, stack, terms, rules)
    statistics, records = await find_memories(ports, scope.tenant, scope.name, query)
    candidates = dict(passages)
    for record in records:
        memory = memory_from_record(record)
        candidates[record.id] = KnowledgeHit(memory, searched_text(record.body), memory.created_at)
    ranked = await asyncio.to_thread(_rank, query, candidates, len(passages), statistics)
    best = await _add_nearest(ports, stack, query, ranked)
    top = best[: max(0, min(limit, MAX_RESULTS))]
    recalled = [(hit.source, hit.score) for hit in top if isinstance(hit.source, Memory)]
    await record_recalls(ports, actor.tenant, query, recalled)
    return KnowledgeResult(tuple(_shorten(hit, terms, rules.redact_text) for hit in top), complete)


async def _find_passages(
    ports: Ports, stack: Stack, terms: Sequence[str], rules: TenantRules
) -> tuple[Mapping[str, KnowledgeHit], bool]:
    """Return every passage of the files with a term, and whether all files were searched."""
    workspace = await files.list_files(ports, stack)
    writable = rules.policy.agent_writable
    by_path = {path: file for path, file in workspace.files.items() if is_searched(path, writable)}
    listed = [
        FileCandidate(stack[0], path, file.blob, file.head.at, file.variables)
        for path, file in by_path.items()
    ]
    selected, complete = file_search.select_files(terms, listed)
    passages: dict[str, KnowledgeHit] = {}
    async for matches in file_search.search(ports, terms, selected):
        for match in matches:
            version = by_path[match.file.path].version
            passages |= await asyncio.to_thread(_split, match, version)
    return passages, complete


def _split(match: MatchedFile, version: int) -> Mapping[str, KnowledgeHit]:
    path, at = match.file.path, match.file.updated_at
    return {
        f"{path}:{passage.line}": KnowledgeHit(
            PassageHit(path, version, passage), f"{path}\n{passage.heading}\n{passage.text}", at
        )
        for passage in split_passages(match.content)
    }


def _rank(
    query: str, candidates: Mapping[str, KnowledgeHit], passages: int, statistics: TermStatistics
) -> list[tuple[str, KnowledgeHit]]:
    """Rank all together; the passages come first and are added to the memories' statistics."""
    texts = [(key, hit.text, hit.at) for key, hit in candidates.items()]
    ranked = rank_texts(query, texts, statistics, uncounted=passages)
    return [(hit.key, _with_score(candidates[hit.key], hit.score)) for hit in ranked]


async def _add_nearest(
    ports: Ports, stack: Stack, query: str, ranked: Sequence[tuple[str, KnowledgeHit]]
) -> list[KnowledgeHit]:
    """Fuse with the memories that are nearest in meaning, where meaning is indexed."""
    if ports.semantic_index is None:
        return [hit for _, hit in ranked]
    nearest = await semantic_recall.find_nearest_memories(
        ports, ports.semantic_index, stack[0], query, limit=MAX_RESULTS
    )
    ranked = ranked[:_MAX_FUSED]
    by_key = dict(ranked)
    for hit in nearest:
        memory = memory_from_record(hit.key)
        ranked_hit = by_key.get(memory.id)
        score = max(hit.score, ranked_hit.score if ranked_hit else 0.0)
        by_key[memory.id] = KnowledgeHit(memory, memory.content, memory.created_at, score)
    verbatim = [key for key, hit in ranked if contains_phrase(query, hit.text)]
    orders = [[key for key, _ in ranked], [hit.key.id for hit in nearest]]
    return [by_key[key] for key in fuse_rankings(orders, verbatim)]


def _with_score(hit: KnowledgeHit, score: float) -> KnowledgeHit:
    return KnowledgeHit(hit.source, hit.text, hit.at, score)


def _shorten(
    hit: KnowledgeHit, terms: Sequence[str], redact_text: Callable[[str], str]
) -> KnowledgeHit:
    """Return what is shown of a hit, redacted with the current rules."""
    source = hit.source
    text = source.content if isinstance(source, Memory) else source.passage.text
    passage = find_passage(terms, redact_text(text), PASSAGE_CHARS)
    return KnowledgeHit(source, passage.text, hit.at, hit.score)
