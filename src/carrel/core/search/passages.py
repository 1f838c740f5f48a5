"""Where a text matches a query: passages with their offsets, and snippets of one line."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from carrel.core.search.full_text import (
    fold_case_and_accents,
    iter_positions,
    iter_terms,
    locate_words,
    tokenize,
)

MAX_SNIPPET_LENGTH: Final = 160
"""Characters."""
MAX_PASSAGE_LENGTH: Final = 4096
"""Characters around a match that are redacted before a snippet is cut out of them."""


class Passage(Struct, frozen=True):
    """Part of a text."""

    offset: int
    """Characters of the text before it."""
    text: str


def count_matches(terms: Sequence[str], text: str) -> int:
    """Number of a query with which a term of the text starts."""
    plain = fold_case_and_accents(text)
    possible = [term for term in terms if all(character in plain for character in term)]
    if not possible:
        return 0
    text_terms = sorted(set(iter_terms(tokenize(text))))
    return sum(_has_prefix(term, text_terms) for term in possible)


def _has_prefix(prefix: str, terms: Sequence[str]) -> bool:
    index = bisect_left(terms, prefix)
    return index < len(terms) and terms[index].startswith(prefix)


def find_passage(terms: Sequence[str], text: str, length: int) -> Passage:
    """Passage of at most `length` characters with as many distinct terms as possible.

    Without a match it is the start of the text.
    """
    if len(text) <= length:
        return Passage(0, text)
    match = find_match(terms, text, length - length // 4) or 0
    start = max(0, min(match - length // 4, len(text) - length))
    return Passage(start, text[start : start + length])


def find_match(terms: Sequence[str], text: str, length: int) -> int | None:
    """Offset of the first of the most distinct terms within `length` characters."""
    matches = list(_iter_matches(terms, text))
    counts: Counter[str] = Counter()
    best, best_count, first = None, 0, 0
    for offset, term in matches:
        counts[term] += 1
        while offset - matches[first][0] >= length:
            dropped = matches[first][1]
            counts[dropped] -= 1
            if not counts[dropped]:
                del counts[dropped]
            first += 1
        if len(counts) > best_count:
            best, best_count = matches[first][0], len(counts)
    return best


def _iter_matches(terms: Sequence[str], text: str) -> Iterator[tuple[int, str]]:
    """Offset in the text and term of the query, for each word that starts with it."""
    located = list(locate_words(text))
    prefixes, matching = tuple(terms), dict[str, list[str]]()
    for position, term in iter_positions([word for _, word in located]):
        if not term.startswith(prefixes):
            continue
        if term not in matching:
            matching[term] = [prefix for prefix in terms if term.startswith(prefix)]
        for prefix in matching[term]:
            yield located[position][0], prefix


def find_line(terms: Sequence[str], text: str) -> Passage:
    """Line of the best match, or the first line with text, up to MAX_PASSAGE_LENGTH."""
    match = find_match(terms, text, MAX_SNIPPET_LENGTH)
    if match is None:
        match = len(text) - len(text.lstrip())
    start = max(text.rfind("\n", 0, match), text.rfind("\r", 0, match)) + 1
    start = max(start, match - MAX_PASSAGE_LENGTH // 2)
    [line, *_] = text[start : start + MAX_PASSAGE_LENGTH].splitlines() or [""]
    return Passage(start, line)


def make_snippet(terms: Sequence[str], line: str) -> str:
    """Cut a line to MAX_SNIPPET_LENGTH around its best match, with ellipses."""
    line = unicodedata.normalize("NFC", " ".join(line.split()))
    passage = find_passage(terms, line, MAX_SNIPPET_LENGTH)
    end = passage.offset + len(passage.text)
    before, after = "…" if passage.offset else "", "…" if end < len(line) else ""
    return before + passage.text.strip() + after
