"""Token counts estimated from text length, if no tokenizer is installed."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.core.prompt.token_estimate import ESTIMATE, estimate_tokens


class EstimateTokens:
    name = ESTIMATE

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        return tuple(map(estimate_tokens, texts))
