"""Semantic search over text embeddings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IndexedTexts:
    """Texts of one owner at a revision, searched together."""

    owner: str
    """Texts of different owners are never compared."""
    revision: int
    """Increases whenever a text is added, changed or removed."""
    pages: AsyncIterator[Sequence[tuple[str, str]]]
    """Pairs of id and text. Not read if this or a later revision is already indexed."""


class SemanticIndex(Protocol):
    """Nearest-neighbour search over text embeddings."""

    async def nearest(
        self, queries: Sequence[str], texts: IndexedTexts, *, limit: int
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        """Return for each query the nearest text ids with their cosine, nearest first.

        Embeddings are deterministic vectors of norm 1; a text without a known word has none and is
        never returned. Ties are ordered by id descending. Nothing leaves the machine and nothing is
        stored. The index in memory is bounded; a removed text may be returned until its revision is
        requested.
        """
