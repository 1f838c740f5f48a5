"""Full text: what counts as a word, and which of the found texts come first.

Every store finds candidates in an index of its own, made from these words; which of them answer a
query best is decided here, so that all stores answer alike.
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

SEARCHED: Final = frozenset({RecordType.MEMORY})
"""The records that are found by their words."""

LONGEST_WORD: Final = 64
"""Characters of a word that are looked at; what follows them makes no difference."""
MOST_ASKED: Final = 16
"""Words of a question that are looked for."""
MOST_BYTES: Final = 256 * 1024
"""Of one text's different words, as much as an index takes."""

_SINGLE: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Characters of scripts that put no spaces between words: each is a word."""
_WORD: Final = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")


def tokenize(text: str) -> tuple[str, ...]:
    """The words of a text in order: without marks, in one letter case, of letters and digits."""
    return tuple(
        word[:LONGEST_WORD] for word in _WORD.findall(fold_case_and_accents(text)) if word.isalnum()
    )


def distinct(text: str) -> tuple[str, ...]:
    """The different words of a text, as many as an index takes of one."""
    taken: list[str] = []
    size = 0
    for word in dict.fromkeys(tokenize(text)):
        size += len(word.encode())
        if size > MOST_BYTES:
            break
        taken.append(word)
    return tuple(taken)


def fold_case_and_accents(text: str) -> str:
    """A text without marks and in one letter case."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(one for one in text if not unicodedata.category(one).startswith("M"))


def query_terms(query: str) -> tuple[str, ...]:
    """The words to look for: each once, and not too many."""
    return tuple(dict.fromkeys(tokenize(query)))[:MOST_ASKED]


def index_terms(record_type: RecordType, body: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that a record is found by, each once; none for what is not searched."""
    return distinct(searched_text(body)) if record_type in SEARCHED else ()


def searched_text(body: Mapping[str, Any]) -> str:
    """What a memory says, and the tags that it was given."""
    return "\n".join((body["content"], *body.get("tags", ())))


def ranked(query: str, found: Sequence[tuple[Key, str, TimestampMs]]) -> list[Key]:
    """The keys of those texts that have words of the query, or words that begin so, best first.

    More of its words beat fewer, whole words beat beginnings, words that stand together as in the
    query beat scattered ones, and newer beats older.
    """
    wanted = tokenize(query)[:MOST_ASKED]
    if not wanted:
        return []
    scored = [(_score(wanted, tokenize(text)), at, key) for key, text, at in found]
    hits = [(score, at, key) for score, at, key in scored if score[0]]
    hits.sort(key=lambda hit: hit[:2], reverse=True)
    return [key for _, _, key in hits]


def contains_phrase(query: str, text: str) -> bool:
    """Whether the words of the query stand in the text one after another, each of them whole."""
    wanted, there = tokenize(query)[:MOST_ASKED], tokenize(text)
    width = len(wanted)
    return width > 0 and any(
        there[at : at + width] == wanted for at in range(len(there) - width + 1)
    )


def _score(wanted: Sequence[str], there: Sequence[str]) -> tuple[int, int, bool]:
    order = sorted(set(there))
    begun = whole = 0
    for word in set(wanted):
        at = bisect_left(order, word)
        if at < len(order) and order[at].startswith(word):
            begun += 1
            whole += order[at] == word
    together = begun == len(set(wanted)) and _stands(wanted, there)
    return begun, whole, together


def _stands(wanted: Sequence[str], there: Sequence[str]) -> bool:
    """Whether the words stand there one after another, the last of them perhaps only begun."""
    *before, last = wanted
    width = len(before)
    return any(
        word.startswith(last) and list(there[max(at - width, 0) : at]) == before
        for at, word in enumerate(there)
    )
