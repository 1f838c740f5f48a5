"""Full-text search: words of a text, and the terms under which it is indexed.

Every store finds candidates in its own index of these terms; `core.search.bm25` orders them, so
all stores return the same order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from msgspec import Struct

from carrel.core.search.function_words import FUNCTION_WORD_TEXTS
from carrel.core.store.record import RecordType

SEARCHED_TYPES: Final = frozenset({RecordType.MEMORY})
"""Record types with a full-text index."""

MAX_WORD_LENGTH: Final = 64
"""Characters of a word that are indexed; the rest is ignored."""
MAX_QUERY_TERMS: Final = 64
"""Terms of a query that are searched for."""
MAX_INDEXED_BYTES: Final = 256 * 1024
"""Total size of the distinct terms indexed per text."""

_IDEOGRAPHS: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ideographs and kana: a word has one or a few characters."""
_ALPHABETS: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer: alphabets of languages without spaces between words."""
_WORD: Final = re.compile(rf"[{_IDEOGRAPHS}{_ALPHABETS}]|[^\W_{_IDEOGRAPHS}{_ALPHABETS}]+")
_WORD_WITH_ACCENTS: Final = re.compile(
    rf"[{_IDEOGRAPHS}{_ALPHABETS}]|(?:[^\W_{_IDEOGRAPHS}{_ALPHABETS}][\u0300-\u036f]*)+"
)
_IDEOGRAPH: Final = re.compile(f"[{_IDEOGRAPHS}]")
_LETTER: Final = re.compile(f"[{_ALPHABETS}]")
_LETTERS_PER_TERM: Final = 3


def tokenize(text: str) -> tuple[str, ...]:
    """Words of a text in order, without accents, in one letter case.

    Each character of a language without spaces between words is a word.
    """
    return tuple(
        word[:MAX_WORD_LENGTH]
        for word in _WORD.findall(fold_case_and_accents(text))
        if word.isalnum()
    )


def iter_terms(words: Sequence[str], *, is_query: bool = False) -> Iterator[str]:
    """Terms of the words of a text, in order.

    A term is a word; an ideograph alone and with the next; three letters of an alphabet without
    spaces, or fewer at the end, which a query needs only if it has no more.
    """
    return (term for _, term in iter_positions(words, is_query=is_query))


def iter_positions(words: Sequence[str], *, is_query: bool = False) -> Iterator[tuple[int, str]]:
    """Terms as `iter_terms`, each with the position of its first word."""
    for position, word in enumerate(words):
        if word.isascii():
            yield position, word
        elif _LETTER.match(word):
            letters = _leading_letters(words[position : position + _LETTERS_PER_TERM])
            is_tail = position and len(letters) < _LETTERS_PER_TERM
            if not (is_query and is_tail and _LETTER.match(words[position - 1])):
                yield position, letters
        else:
            yield position, word
            following = words[position + 1] if position + 1 < len(words) else ""
            if _IDEOGRAPH.match(word) and _IDEOGRAPH.match(following):
                yield position, word + following


def _leading_letters(words: Sequence[str]) -> str:
    return "".join(takewhile(_LETTER.match, words))


def locate_words(text: str) -> Iterator[tuple[int, str]]:
    """Words as `tokenize`, each with its offset in the text."""
    for match in _WORD_WITH_ACCENTS.finditer(text):
        for word in tokenize(match[0]):
            yield match.start(), word


def distinct_terms(text: str) -> tuple[str, ...]:
    """Distinct terms of a text, up to MAX_INDEXED_BYTES."""
    terms: list[str] = []
    size = 0
    for term in dict.fromkeys(iter_terms(tokenize(text))):
        size += len(term.encode())
        if size > MAX_INDEXED_BYTES:
            break
        terms.append(term)
    return tuple(terms)


def fold_case_and_accents(text: str) -> str:
    """Remove accents and fold the letter case."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(
        character for character in text if not unicodedata.category(character).startswith("M")
    )


class ParsedQuery(Struct, frozen=True):
    """Words of a query, and its distinct terms, at most MAX_QUERY_TERMS."""

    words: tuple[str, ...]
    content: tuple[str, ...]
    function: tuple[str, ...]
    """Terms that consist of function words."""

    @property
    def terms(self) -> tuple[str, ...]:
        return self.content + self.function

    @property
    def searched_terms(self) -> tuple[str, ...]:
        """Terms without function words, unless there are no others."""
        return self.content or self.function


def parse_query(query: str) -> ParsedQuery:
    words = tokenize(query)
    is_function = _find_function_words(words)
    content, function = dict[str, None](), dict[str, None]()
    for position, term in iter_positions(words, is_query=True):
        width = 1 if words[position] == term else len(term)
        all_function = all(is_function[position : position + width])
        (function if all_function else content)[term] = None
    content_terms = tuple(content)[:MAX_QUERY_TERMS]
    rest = [term for term in function if term not in content]
    return ParsedQuery(words, content_terms, tuple(rest)[: MAX_QUERY_TERMS - len(content_terms)])


def _find_function_words(words: Sequence[str]) -> list[bool]:
    """Whether each word belongs to a function word, the longest at its position."""
    result: list[bool] = []
    while len(result) < len(words):
        start = len(result)
        longest = _MAX_FUNCTION_WORD_LENGTH if _is_character(words[start]) else 1
        for size in range(min(longest, len(words) - start), 0, -1):
            if "".join(words[start : start + size]) in _FUNCTION_WORDS:
                result += [True] * size
                break
        else:
            result.append(False)
    return result


def _is_character(word: str) -> bool:
    """Whether a word is a character of a language without spaces."""
    return bool(_IDEOGRAPH.match(word) or _LETTER.match(word))


_FUNCTION_WORDS: Final = frozenset(
    folded
    for text in FUNCTION_WORD_TEXTS
    for folded in map("".join, map(tokenize, text.split()))
    if len(folded) > 1 or not _LETTER.match(folded)  # a letter alone begins too many words
)
"""Function words, folded like those of texts."""
_MAX_FUNCTION_WORD_LENGTH: Final = 12


def index_terms(record_type: RecordType, body: Mapping[str, Any]) -> tuple[str, ...]:
    """Terms under which a record is indexed; empty for types that are not searched."""
    return distinct_terms(searched_text(body)) if record_type in SEARCHED_TYPES else ()


def searched_text(body: Mapping[str, Any]) -> str:
    """Content and tags of a memory."""
    return "\n".join((body["content"], *body.get("tags", ())))


def contains_phrase(query: str, text: str) -> bool:
    """Whether the text contains the query as consecutive whole words."""
    terms, words = tokenize(query)[:MAX_QUERY_TERMS], tokenize(text)
    width = len(terms)
    return width > 0 and any(
        words[start : start + width] == terms for start in range(len(words) - width + 1)
    )
