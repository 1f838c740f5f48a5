"""What texts mean, and which of them mean something alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IndexedTexts:
    """Texts that are compared with a question together, as they stand at a revision."""

    owner: str
    """Whose they are. Those of one owner are never compared for another."""
    revision: int
    """Rises whenever one of them changes, comes or goes."""
    pages: AsyncIterator[Sequence[tuple[str, str]]]
    """Each text with its id. Not read where they are at hand, at this revision or a later one."""


class SemanticIndex(Protocol):
    """Knows how alike texts are, whatever their words."""

    async def nearest(
        self, queries: Sequence[str], texts: IndexedTexts, *, limit: int
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        """Return for each query the ids of the texts nearest to it, with the cosine, nearest first.

        Each text has one place, a vector of norm 1, which is the same whenever it is asked for and
        whatever is asked for with it; one in which no word is known has none, and is near nothing.
        Of two as near the greater id comes first. Nothing leaves this machine, and nothing is
        stored: what is kept at hand is bounded, and a text that is gone may be named until the
        revision is asked for at which it is.
        """
