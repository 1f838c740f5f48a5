"""Semantic search in an agent's memories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from carrel.actions.records import load_collection_revision
from carrel.core.identifiers import Scope
from carrel.core.memory.memory import agent_index_key, memory_from_record, normalize_question
from carrel.core.search.bm25 import ScoredText
from carrel.core.search.full_text import contains_phrase, searched_text
from carrel.core.search.rank_fusion import MIN_SIMILARITY, fuse_rankings
from carrel.core.store.record import Record, RecordType
from carrel.ports import IndexedTexts, Ports, SemanticIndex

_PAGE_SIZE: Final = 500


async def find_nearest_memories(
    ports: Ports, semantic_index: SemanticIndex, scope: Scope, query: str, *, limit: int
) -> list[ScoredText[Record]]:
    """Find memories similar in meaning to the query, nearest first."""
    memory_revision = await load_collection_revision(ports, scope.tenant, RecordType.MEMORY)
    texts = IndexedTexts(
        f"{scope.tenant}/{scope.name}", memory_revision.revision, _iter_pages(ports, scope)
    )
    [scored] = await semantic_index.nearest([normalize_question(query)], texts, limit=limit)
    similarities = {id: cosine for id, cosine in scored if cosine >= MIN_SIMILARITY}
    records = (
        await ports.records.get(scope.tenant, RecordType.MEMORY, list(similarities))
        if similarities
        else ()
    )
    return [
        ScoredText(memory, min(1.0, similarities[memory.id]))
        for memory in records
        if memory and memory_from_record(memory).agent == scope.name
    ]


def merge_hits(
    query: str, text_hits: Sequence[ScoredText[Record]], semantic_hits: Sequence[ScoredText[Record]]
) -> list[ScoredText[Record]]:
    """Fuse full-text and semantic hits; verbatim matches of the query come first.

    A memory found both ways has the higher of its scores.
    """
    by_id: dict[str, ScoredText[Record]] = {}
    for hit in (*semantic_hits, *text_hits):
        other = by_id.get(hit.key.id)
        by_id[hit.key.id] = hit if other is None or hit.score > other.score else other
    verbatim = [
        hit.key.id for hit in text_hits if contains_phrase(query, searched_text(hit.key.body))
    ]
    orders = [[hit.key.id for hit in hits] for hits in (text_hits, semantic_hits)]
    return [by_id[id] for id in fuse_rankings(orders, verbatim)]


async def _iter_pages(ports: Ports, scope: Scope) -> AsyncIterator[list[tuple[str, str]]]:
    index_key, after = agent_index_key(scope.name), ""
    while batch := await ports.records.list(
        scope.tenant, RecordType.MEMORY, index_key=index_key, after=after, limit=_PAGE_SIZE
    ):
        yield [(record.id, searched_text(record.body)) for record in batch]
        after = batch[-1].id
