"""Reciprocal rank fusion of full-text and semantic search results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

Key = TypeVar("Key")

MIN_SIMILARITY: Final = 0.35
"""Cosine similarity from which a semantic match counts."""
_DAMPING: Final = 60
"""Keeps the top of one ranking from outweighing keys that rank high in all."""


def fuse_rankings(rankings: Sequence[Sequence[Key]], preferred: Sequence[Key] = ()) -> list[Key]:
    """Keys of `preferred` first, then all others by the sum of their reciprocal ranks.

    Ties keep the order of the rankings. No ranking may contain a key twice.
    """
    leading = dict.fromkeys(preferred)
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (_DAMPING + rank)
    remaining = [key for key in scores if key not in leading]
    return [*leading, *sorted(remaining, key=lambda key: -scores[key])]
