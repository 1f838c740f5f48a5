"""Memories by their meaning: those of an agent that are nearest to a question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from carrel.actions.records import collection_revision
from carrel.core.identifiers import Scope
from carrel.core.memory.memory import normalize_question, of_agent
from carrel.core.search.full_text import contains_phrase, searched_text
from carrel.core.search.rank_fusion import NEAR, fused
from carrel.core.store.record import Record, RecordType
from carrel.ports import IndexedTexts, Ports, SemanticIndex

_PAGE: Final = 500


async def nearest_memories(
    ports: Ports, meanings: SemanticIndex, own: Scope, query: str, *, limit: int
) -> list[Record]:
    """What an agent remembers that means something like the question, nearest first."""
    at = await collection_revision(ports, own.tenant, RecordType.MEMORY)
    texts = IndexedTexts(f"{own.tenant}/{own.name}", at.revision, _pages(ports, own))
    [found] = await meanings.nearest([normalize_question(query)], texts, limit=limit)
    ids = [id for id, cosine in found if cosine >= NEAR]
    records = await ports.records.get(own.tenant, RecordType.MEMORY, ids) if ids else ()
    return [one for one in records if one and one.body["agentId"] == own.name]


def merge_hits(query: str, worded: Sequence[Record], near: Sequence[Record]) -> list[Record]:
    """Those found by words and those found by meaning; what says the very question stays first."""
    known = {record.id: record for record in (*near, *worded)}
    verbatim = [one.id for one in worded if contains_phrase(query, searched_text(one.body))]
    orders = [[record.id for record in found] for found in (worded, near)]
    return [known[id] for id in fused(orders, verbatim)]


async def _pages(ports: Ports, own: Scope) -> AsyncIterator[list[tuple[str, str]]]:
    link, after = of_agent(own.name), ""
    while found := await ports.records.list(
        own.tenant, RecordType.MEMORY, link=link, after=after, limit=_PAGE
    ):
        yield [(record.id, searched_text(record.body)) for record in found]
        after = found[-1].id
