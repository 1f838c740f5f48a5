"""How long a text is for a model, where no tokenizer is at hand to tell."""

from __future__ import annotations

from typing import Final

ESTIMATE: Final = "estimate"
_BYTES: Final = 4
"""Of UTF-8 to a token, as a rule."""


def estimated(text: str) -> int:
    return -(-len(text.encode()) // _BYTES)
