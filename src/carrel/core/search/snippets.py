"""Whether a text has every word that is looked for, and the piece of it that shows so."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from carrel.core.search.full_text import fold_case_and_accents, tokenize

LONGEST: Final = 160
"""Characters of a snippet."""
_LEAD: Final = 40
"""Characters before the word that was found."""
_ROOM: Final = 4096
"""Characters of a line that are looked at around that word, so that what is cut off is short."""
_WORD: Final = re.compile(r"[^\W_]+")


def fits(wanted: Sequence[str], text: str) -> bool:
    """Whether each of these words, as ``core.search`` asks for them, begins a word of the text."""
    plain = fold_case_and_accents(text)
    if not all(word in plain for word in wanted):
        return False
    there = sorted(set(tokenize(text)))
    return all(_begins(word, there) for word in wanted)


def _begins(word: str, there: Sequence[str]) -> bool:
    at = bisect_left(there, word)
    return at < len(there) and there[at].startswith(word)


def passage(wanted: Sequence[str], text: str) -> str:
    """The line in which a wanted word is first found, or the first that says anything.

    Of a long one what is around the word.
    """
    first = ""
    for line in map(str.strip, text.splitlines()):
        first = first or line
        if (
            any(word in fold_case_and_accents(line) for word in wanted)
            and (at := _place(wanted, line)) >= 0
        ):
            start = max(0, at - _ROOM // 2)
            return unicodedata.normalize("NFC", line)[start : start + _ROOM]
    return first[:_ROOM]


def snippet(wanted: Sequence[str], line: str) -> str:
    """As much of a line as is shown of it, with an ellipsis where something was left out."""
    line = unicodedata.normalize("NFC", " ".join(line.split()))
    if len(line) <= LONGEST:
        return line
    start = max(0, min(_place(wanted, line) - _LEAD, len(line) - LONGEST))
    shown = line[start : start + LONGEST]
    before, after = "…" if start else "", "…" if start + LONGEST < len(line) else ""
    return before + shown.strip() + after


def _place(wanted: Sequence[str], line: str) -> int:
    """Where the first wanted word begins in the line as it is written in NFC, else -1."""
    for found in _WORD.finditer(unicodedata.normalize("NFC", line)):
        if any(part.startswith(word) for part in tokenize(found[0]) for word in wanted):
            return found.start()
    return -1
