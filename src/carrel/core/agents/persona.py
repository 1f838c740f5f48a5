"""Who an agent is, as its IDENTITY.md says: five fields of a bullet list, and one line of them.

What is still in parentheses is for somebody to fill in, and counts as nothing. Whoever writes a
value writes into a prompt: it stays on its line, and says of no other field what that is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from carrel.core.markdown.fences import outside_fences
from carrel.core.markdown.labelled_lines import value_between

FIELDS: Final = ("name", "creature", "vibe", "emoji", "avatar")
_SHOWN: Final = ("name", "emoji", "vibe", "creature")
"""In the order of the line. An avatar is for eyes."""

_BULLET: Final = re.compile(r"[ \t]*+[-*+]")
_FIELD: Final = re.compile(
    rf"[ \t]*+\**+[ \t]*+(?P<field>{'|'.join(FIELDS)})[ \t]*+\**+[ \t]*+:\**+", re.IGNORECASE
)
_OPENS: Final = frozenset("(\uff08")
_PARENTHESIS: Final = re.compile("[()\uff08\uff09]")
_MARKS: Final = "*_`~"
_EMPHASIS: Final = frozenset(_MARKS)
_AROUND: Final = _MARKS + " \t\"'\u201c\u201d\u2018\u2019"


class Persona(Struct, frozen=True):
    """What is known of an agent; None where nothing is."""

    name: str | None = None
    creature: str | None = None
    vibe: str | None = None
    emoji: str | None = None
    avatar: str | None = None

    @property
    def line(self) -> str:
        """`name=…, emoji=…, vibe=…, creature=…`, without what is not known; may be empty."""
        known = ((field, getattr(self, field)) for field in _SHOWN)
        return ", ".join(f"{field}={_contained(value)}" for field, value in known if value)


def persona_of(file: str) -> Persona:
    """Of several values for one field the last one holds; nothing said takes nothing back."""
    return Persona(**dict(_said(file)))


def values(file: str, field: str) -> tuple[str, ...]:
    """Everything that is said of one of FIELDS, in order."""
    return tuple(value for said, value in _said(file) if said == field)


def _said(file: str) -> Iterator[tuple[str, str]]:
    for line in outside_fences(file):
        bullet = None if line.depth else _BULLET.match(line.text)
        found = _FIELD.match(line.text, bullet.end()) if bullet else None
        if found:
            start = line.end - len(line.text) + found.end()
            at = value_between(file, start, line.end)
            if value := _value(file[at.start : at.end]):
                yield found["field"].lower(), value


def _value(text: str) -> str:
    """What is meant, without what waits to be filled in and without marks of emphasis left open."""
    told = _closed(_without_hints(_visible(text)).strip())
    return "" if _is_hint(told) else told


def _closed(text: str) -> str:
    """Without asterisks at the end that close what was opened before the value."""
    bare = text.rstrip("*")
    return text if text.startswith("*") else bare.rstrip()


def _without_hints(text: str) -> str:
    """Without `_(…)_`, `*(…)*` and the like, which are a template's words, wherever they stand."""
    ends, kept, at = _groups(text), [], 0
    for start, end in ends.items():
        if start < at or text[start - 1 : start] not in _EMPHASIS:
            continue
        if text[end : end + 1] in _EMPHASIS:
            kept.append(text[at:start].rstrip(_MARKS))
            at = _past(text, end, _MARKS)
    return "".join(kept) + text[at:]


def _is_hint(text: str) -> bool:
    """Whether all of it stands in parentheses, or in one that is never closed."""
    ends, at = _groups(text), _past(text, 0, _AROUND)
    while at < len(text) and text[at] in _OPENS:
        at = _past(text, ends.get(at, len(text)), _AROUND)
    return at == len(text)


def _groups(text: str) -> dict[int, int]:
    """Where each parenthesis opens, and past where it closes; in order, closed ones alone."""
    open_at: list[int] = []
    ends: dict[int, int] = {}
    for found in _PARENTHESIS.finditer(text):
        if found[0] in _OPENS:
            open_at.append(found.start())
        elif open_at:
            ends[open_at.pop()] = found.end()
    return dict(sorted(ends.items()))


def _past(text: str, at: int, characters: str) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at


_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINER: Final = "\u200d"
_BREAKS: Final = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_IN_A_WORD: Final = re.compile(r"(?<=[^\W\d_])[\u200d\ufe00-\ufe0f]+")
_OF_A_FIELD: Final = re.compile(rf"({'|'.join(FIELDS)})[ \t]*+=[ \t]*+", re.IGNORECASE)


def _visible(text: str) -> str:
    """One line of what can be seen; what holds an emoji together stays."""
    if text.isascii() and text.isprintable():
        return text
    seen = (
        each
        for each in _BREAKS.sub(" ", text)
        if each == _JOINER or unicodedata.category(each) not in _UNSEEN
    )
    return _IN_A_WORD.sub("", "".join(seen))


def _contained(value: str) -> str:
    """A value that begins no further field: `, name=X` in it becomes `, name: X`."""
    return _OF_A_FIELD.sub(r"\1: ", value).rstrip()
