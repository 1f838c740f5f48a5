"""Semantic search in an agent's memories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from carrel.actions.records import load_collection_revision
from carrel.core.identifiers import Scope
from carrel.core.memory.memory import agent_index_key, memory_from_record, normalize_question
from carrel.core.search.full_text import contains_phrase, searched_text
from carrel.core.search.rank_fusion import MIN_SIMILARITY, fuse_rankings
from carrel.core.store.record import Record, RecordType
from carrel.ports import IndexedTexts, Ports, SemanticIndex

_PAGE_SIZE: Final = 500


async def find_nearest_memories(
    ports: Ports, semantic_index: SemanticIndex, scope: Scope, query: str, *, limit: int
) -> list[Record]:
    """Find memories similar in meaning to the query, nearest first."""
    memory_revision = await load_collection_revision(ports, scope.tenant, RecordType.MEMORY)
    texts = IndexedTexts(
        f"{scope.tenant}/{scope.name}", memory_revision.revision, _iter_pages(ports, scope)
    )
    [scored] = await semantic_index.nearest([normalize_question(query)], texts, limit=limit)
    ids = [id for id, cosine in scored if cosine >= MIN_SIMILARITY]
    records = await ports.records.get(scope.tenant, RecordType.MEMORY, ids) if ids else ()
    return [
        memory for memory in records if memory and memory_from_record(memory).agent == scope.name
    ]


def merge_hits(
    query: str, text_hits: Sequence[Record], semantic_hits: Sequence[Record]
) -> list[Record]:
    """Fuse full-text and semantic hits; verbatim matches of the query come first."""
    by_id = {record.id: record for record in (*semantic_hits, *text_hits)}
    verbatim = [hit.id for hit in text_hits if contains_phrase(query, searched_text(hit.body))]
    orders = [[record.id for record in hits] for hits in (text_hits, semantic_hits)]
    return [by_id[id] for id in fuse_rankings(orders, verbatim)]


async def _iter_pages(ports: Ports, scope: Scope) -> AsyncIterator[list[tuple[str, str]]]:
    index_key, after = agent_index_key(scope.name), ""
    while batch := await ports.records.list(
        scope.tenant, RecordType.MEMORY, index_key=index_key, after=after, limit=_PAGE_SIZE
    ):
        yield [(record.id, searched_text(record.body)) for record in batch]
        after = batch[-1].id
