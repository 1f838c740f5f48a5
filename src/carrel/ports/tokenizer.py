"""Token counts of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Tokenizer(Protocol):
    """Counts tokens of texts for a model."""

    @property
    def name(self) -> str:
        """Name of the tokenizer; `token_estimate.ESTIMATE` if counts are estimates."""

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the token count of each text, in order. Deterministic."""
