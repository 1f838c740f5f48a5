"""Full-text search: tokenization and ranking.

Every store finds candidates in its own index of these terms; ranking happens here, so all stores
return the same order.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import RecordType

Key = TypeVar("Key")

SEARCHED_TYPES: Final = frozenset({RecordType.MEMORY})
"""Record types with a full-text index."""

MAX_WORD_LENGTH: Final = 64
"""Characters of a word that are indexed; the rest is ignored."""
MAX_QUERY_TERMS: Final = 16
"""Terms of a query that are searched for."""
MAX_INDEXED_BYTES: Final = 256 * 1024
"""Total size of the distinct terms indexed per text."""

_SINGLE_CHARACTER_WORDS: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces between words: each is a word."""
_WORD: Final = re.compile(rf"[{_SINGLE_CHARACTER_WORDS}]|[^\W_{_SINGLE_CHARACTER_WORDS}]+")


def tokenize(text: str) -> tuple[str, ...]:
    """Words of a text in order, without accents, in one letter case."""
    return tuple(
        word[:MAX_WORD_LENGTH]
        for word in _WORD.findall(fold_case_and_accents(text))
        if word.isalnum()
    )


def distinct_terms(text: str) -> tuple[str, ...]:
    """Distinct terms of a text, up to MAX_INDEXED_BYTES."""
    terms: list[str] = []
    size = 0
    for word in dict.fromkeys(tokenize(text)):
        size += len(word.encode())
        if size > MAX_INDEXED_BYTES:
            break
        terms.append(word)
    return tuple(terms)


def fold_case_and_accents(text: str) -> str:
    """Remove accents and fold the letter case."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(
        character for character in text if not unicodedata.category(character).startswith("M")
    )


def query_terms(query: str) -> tuple[str, ...]:
    """Distinct terms of a query, at most MAX_QUERY_TERMS."""
    return tuple(dict.fromkeys(tokenize(query)))[:MAX_QUERY_TERMS]


def index_terms(record_type: RecordType, body: Mapping[str, Any]) -> tuple[str, ...]:
    """Terms under which a record is indexed; empty for types that are not searched."""
    return distinct_terms(searched_text(body)) if record_type in SEARCHED_TYPES else ()


def searched_text(body: Mapping[str, Any]) -> str:
    """Content and tags of a memory."""
    return "\n".join((body["content"], *body.get("tags", ())))


def rank_texts(query: str, candidates: Sequence[tuple[Key, str, TimestampMs]]) -> list[Key]:
    """Keys of the texts with a word that starts with a query term, best first.

    More terms beat fewer, whole words beat prefixes, a phrase beats scattered words, newer beats
    older.
    """
    terms = tokenize(query)[:MAX_QUERY_TERMS]
    if not terms:
        return []
    scored = [
        (_score(terms, tokenize(text)), updated_at, key) for key, text, updated_at in candidates
    ]
    hits = [(score, updated_at, key) for score, updated_at, key in scored if score[0]]
    hits.sort(key=lambda hit: hit[:2], reverse=True)
    return [key for _, _, key in hits]


def contains_phrase(query: str, text: str) -> bool:
    """Whether the text contains the query as consecutive whole words."""
    terms, words = tokenize(query)[:MAX_QUERY_TERMS], tokenize(text)
    width = len(terms)
    return width > 0 and any(
        words[start : start + width] == terms for start in range(len(words) - width + 1)
    )


def _score(terms: Sequence[str], words: Sequence[str]) -> tuple[int, int, bool]:
    vocabulary = sorted(set(words))
    prefix_matches = exact_matches = 0
    for term in set(terms):
        index = bisect_left(vocabulary, term)
        if index < len(vocabulary) and vocabulary[index].startswith(term):
            prefix_matches += 1
            exact_matches += vocabulary[index] == term
    is_phrase = prefix_matches == len(set(terms)) and _has_phrase(terms, words)
    return prefix_matches, exact_matches, is_phrase


def _has_phrase(terms: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the terms occur consecutively; the last may be a prefix."""
    *before, last = terms
    width = len(before)
    return any(
        word.startswith(last) and list(words[max(index - width, 0) : index]) == before
        for index, word in enumerate(words)
    )
