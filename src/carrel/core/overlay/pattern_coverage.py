"""Whether one path pattern matches every path that another one matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from carrel.core.overlay.file_classes import split_pattern

_MAX_STEPS: Final = 5_000
"""Compared states after which a pattern counts as not covered."""
_OTHER: Final = "\0"
"""Stands for all characters that neither pattern names."""


def covers(pattern: str, other: str) -> bool:
    """Whether `pattern` matches all that `other` matches; False if it takes too long to decide."""
    wide, narrow = split_pattern(pattern), split_pattern(other)
    characters = {*pattern, *other, "/", _OTHER} - {"*", "?"}
    pending = [(state, _closure(wide, [0])) for state in _closure(narrow, [0])]
    compared = set(pending)
    while pending:
        state, matched = pending.pop()
        if state == 2 * len(narrow) and 2 * len(wide) not in matched:
            return False
        if not matched or len(compared) > _MAX_STEPS:
            return False
        for character in characters:
            reached = _closure(wide, _advance(wide, matched, character))
            for following in _closure(narrow, _advance(narrow, [state], character)):
                if (following, reached) not in compared:
                    compared.add((following, reached))
                    pending.append((following, reached))
    return True


# A state is twice the index of the next token, plus one within the folders of a `**/`.


def _closure(tokens: Sequence[str], states: Iterable[int]) -> frozenset[int]:
    """The states and those that follow without a character."""
    reached = set(states)
    for state in sorted(reached):
        index = state // 2
        while state % 2 == 0 and index < len(tokens) and tokens[index] in ("*", "**", "**/"):
            index += 1
            reached.add(2 * index)
    return frozenset(reached)


def _advance(tokens: Sequence[str], states: Iterable[int], character: str) -> set[int]:
    reached = set()
    for state in states:
        index = state // 2
        token = tokens[index] if index < len(tokens) else ""
        if token == "**/":
            reached |= {2 * index + 1, 2 * index + 2} if character == "/" else {2 * index + 1}
        elif token == "**" or (token == "*" and character != "/"):
            reached.add(2 * index)
        elif token == character or (token == "?" and character != "/"):
            reached.add(2 * index + 2)
    return reached
