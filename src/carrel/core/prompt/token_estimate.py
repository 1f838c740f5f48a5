"""Token count estimate for when no tokenizer is available."""

from __future__ import annotations

from typing import Final

ESTIMATE: Final = "estimate"
_BYTES_PER_TOKEN: Final = 4
"""UTF-8 bytes per token on average."""


def estimate_tokens(text: str) -> int:
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)
