"""Finding texts by words: what a text's words are, and which of the texts found is the best.

Every store finds by these very words, so that all of them find alike; a word that is asked for
finds those that begin with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from carrel.core.names import Moment
from carrel.core.record import Noun

Key = TypeVar("Key")

SEARCHED: Final = frozenset({Noun.MEMORY})
"""The records that are found by their words."""

LONGEST_WORD: Final = 64
"""Of a longer one only the beginning is looked at."""
MOST_ASKED: Final = 16
"""Words of a question that are looked for."""

_ALONE: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Scripts that put no blanks between words: each character counts as one."""
_WORD: Final = re.compile(f"[{_ALONE}]|[^\\W_{_ALONE}]+")


def words(text: str) -> tuple[str, ...]:
    """The words of a text in their order, folded: neither case nor marks make a difference."""
    found = _WORD.findall(_folded(text))
    return tuple(word[:LONGEST_WORD] for word in found if word.isalnum())


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join([one for one in plain if not unicodedata.category(one).startswith("M")])


def asked(query: str) -> tuple[str, ...]:
    """The words to look for: each once, and not too many."""
    return tuple(dict.fromkeys(words(query)))[:MOST_ASKED]


def found_by(noun: Noun, body: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that a record is found by, each once; none for what is not searched."""
    if noun not in SEARCHED:
        return ()
    return tuple(dict.fromkeys(words(searched_text(body))))


def searched_text(body: Mapping[str, Any]) -> str:
    """What a memory says, and the tags that it was given."""
    return "\n".join((body["content"], *body.get("tags", ())))


def ranked(query: str, found: Sequence[tuple[Key, str, Moment]]) -> list[tuple[Key, str, Moment]]:
    """Those of the texts that have anything of it, the best first.

    All words beat some of them, whole words beat beginnings, a phrase beats words that are
    scattered, and what is newer beats what is older.
    """
    wanted, phrase = asked(query), words(query)[:MOST_ASKED]
    fits = [(_fit(words(text), wanted, phrase), one) for one in found for text in (one[1],)]
    good = [(fit, one) for fit, one in fits if fit[0]]
    good.sort(key=lambda pair: (*pair[0], pair[1][2]), reverse=True)
    return [one for _, one in good]


def _fit(
    text: Sequence[str], wanted: Sequence[str], phrase: Sequence[str]
) -> tuple[int, int, bool]:
    """How many words are there, how many of them whole, and whether they stand together."""
    known = set(text)
    whole = sum(word in known for word in wanted)
    begun = sum(any(one.startswith(word) for one in known) for word in wanted)
    together = begun == len(wanted) > 0 and _stands_together(text, phrase)
    return begun, whole, together


def _stands_together(text: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether the words follow one another, the last perhaps only begun."""
    *first, last = phrase
    count = len(first)
    return any(
        list(text[at : at + count]) == first and text[at + count].startswith(last)
        for at in range(len(text) - count)
    )
