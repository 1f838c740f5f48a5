"""Texts of any length as memories, which are single lines of limited length."""

from __future__ import annotations

from typing import Final

MAX_CHARACTERS: Final = 2000
"""Characters that one memory may have."""


def split_memory(text: str, limit: int = MAX_CHARACTERS) -> list[str]:
    """The text in lines of up to ``limit`` characters, cut between words where possible."""
    parts, rest = [], " ".join(text.split())
    while len(rest) > limit:
        cut = rest.rfind(" ", 1, limit + 1)
        end = cut if cut > 0 else limit
        parts.append(rest[:end])
        rest = rest[end:].lstrip()
    return [*parts, rest] if rest else parts
