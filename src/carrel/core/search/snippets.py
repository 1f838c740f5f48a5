"""Snippets of texts that contain all search terms."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from carrel.core.search.full_text import fold_case_and_accents, tokenize

MAX_SNIPPET_LENGTH: Final = 160
"""Characters."""
_LEADING_LENGTH: Final = 40
"""Characters before the first match."""
_MAX_PASSAGE_LENGTH: Final = 4096
"""Characters of a line kept around the match."""
_WORD: Final = re.compile(r"[^\W_]+")


def has_all_terms(terms: Sequence[str], text: str) -> bool:
    """Whether each of `full_text.query_terms` is a prefix of a word in the text."""
    plain = fold_case_and_accents(text)
    if not all(term in plain for term in terms):
        return False
    words = sorted(set(tokenize(text)))
    return all(_has_prefix(term, words) for term in terms)


def _has_prefix(prefix: str, words: Sequence[str]) -> bool:
    index = bisect_left(words, prefix)
    return index < len(words) and words[index].startswith(prefix)


def find_passage(terms: Sequence[str], text: str) -> str:
    """First line with a term, or the first non-blank line.

    Long lines are cut around the term.
    """
    first_line = ""
    for line in map(str.strip, text.splitlines()):
        first_line = first_line or line
        if (
            any(word in fold_case_and_accents(line) for word in terms)
            and (position := _term_position(terms, line)) >= 0
        ):
            start = max(0, position - _MAX_PASSAGE_LENGTH // 2)
            return unicodedata.normalize("NFC", line)[start : start + _MAX_PASSAGE_LENGTH]
    return first_line[:_MAX_PASSAGE_LENGTH]


def make_snippet(terms: Sequence[str], line: str) -> str:
    """Cut a line to MAX_SNIPPET_LENGTH around the first term, with ellipses."""
    line = unicodedata.normalize("NFC", " ".join(line.split()))
    if len(line) <= MAX_SNIPPET_LENGTH:
        return line
    start = max(
        0, min(_term_position(terms, line) - _LEADING_LENGTH, len(line) - MAX_SNIPPET_LENGTH)
    )
    excerpt = line[start : start + MAX_SNIPPET_LENGTH]
    before, after = "…" if start else "", "…" if start + MAX_SNIPPET_LENGTH < len(line) else ""
    return before + excerpt.strip() + after


def _term_position(terms: Sequence[str], line: str) -> int:
    """Position of the first term in the line in NFC, else -1."""
    for match in _WORD.finditer(unicodedata.normalize("NFC", line)):
        if any(part.startswith(term) for part in tokenize(match[0]) for term in terms):
            return match.start()
    return -1
