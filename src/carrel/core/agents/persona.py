"""Persona of an agent: five fields of a bullet list in IDENTITY.md.

The only parser of the file: whatever changes a field finds its line here.

Values in parentheses are hints to be filled in and count as empty. Values end up in prompts, so
each stays on one line and cannot set another field.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from carrel.core.markdown.fences import content_lines
from carrel.core.markdown.labelled_lines import ValueSpan, value_between

PERSONA_FIELDS: Final = ("name", "creature", "vibe", "emoji", "avatar")
_LINE_FIELDS: Final = ("name", "emoji", "vibe", "creature")
"""Order of the fields in the line. The avatar is not part of it."""

_BULLET: Final = re.compile(r"[ \t]*+(?:[-+]|\*(?=[ \t])|(?=\*))")
"""A label in emphasis needs no bullet."""
_FIELD: Final = re.compile(
    rf"[ \t]*+(?P<opening>\**+)[ \t]*+(?P<field>{'|'.join(PERSONA_FIELDS)})"
    r"[ \t]*+(?P<closing>\**+)[ \t]*+:(?P<after>\**+)",
    re.IGNORECASE,
)
_OPENING_PARENTHESES: Final = frozenset("(\uff08")
_PARENTHESIS: Final = re.compile("[()\uff08\uff09]")
_EMPHASIS_MARKS: Final = "*_`~"
_EMPHASIS_CHARACTERS: Final = frozenset(_EMPHASIS_MARKS)
_SURROUNDING_CHARACTERS: Final = _EMPHASIS_MARKS + " \t\"'\u201c\u201d\u2018\u2019"


class Persona(Struct, frozen=True):
    """Fields of the persona; None if not set."""

    name: str | None = None
    creature: str | None = None
    vibe: str | None = None
    emoji: str | None = None
    avatar: str | None = None

    @property
    def line(self) -> str:
        """`name=…, emoji=…, vibe=…, creature=…` without unset fields; may be empty."""
        fields = ((field, getattr(self, field)) for field in _LINE_FIELDS)
        return ", ".join(f"{field}={_neutralize_fields(value)}" for field, value in fields if value)


class PersonaField(NamedTuple):
    """Line of IDENTITY.md that has one of PERSONA_FIELDS."""

    name: str
    span: ValueSpan
    """Position of the value in the file."""
    value: str
    """Empty if there is only a hint."""


def parse_fields(file: str) -> Iterator[PersonaField]:
    """Parse the fields of IDENTITY.md in order.

    Ignores front matter, code fences, HTML comments and quotes.
    """
    for line in content_lines(file):
        bullet = None if line.quote_depth else _BULLET.match(line.text)
        match = _FIELD.match(line.text, bullet.end()) if bullet else None
        if match:
            start = line.end - len(line.text) + match.end()
            span = _value_in_emphasis(file, value_between(file, start, line.end), match)
            value = _clean_value(file[span.start : span.end])
            yield PersonaField(match["field"].lower(), span, value)


def find_field(file: str, name: str) -> PersonaField | None:
    """First line of a field. To set the field, replace its value."""
    return next((field for field in parse_fields(file) if field.name == name), None)


def parse_persona(file: str) -> Persona:
    """Parse IDENTITY.md. The first non-empty value of a field wins."""
    fields = reversed([field for field in parse_fields(file) if field.value])
    return Persona(**{field.name: field.value for field in fields})


def field_values(file: str, name: str) -> tuple[str, ...]:
    """All values of one of PERSONA_FIELDS, in order."""
    return tuple(field.value for field in parse_fields(file) if field.name == name and field.value)


def _value_in_emphasis(file: str, span: ValueSpan, label: re.Match[str]) -> ValueSpan:
    """Value without the asterisks that close emphasis opened before it."""
    unclosed = abs(len(label["opening"]) - len(label["closing"]) - len(label["after"]))
    end = span.end
    while unclosed and end > span.start and file[end - 1] == "*":
        end, unclosed = end - 1, unclosed - 1
    return ValueSpan(span.start, end)


def _clean_value(text: str) -> str:
    """Value without hints; empty if only a hint."""
    value = _remove_hints(_visible_text(text)).strip()
    return "" if _is_hint(value) else value


def _remove_hints(text: str) -> str:
    """Remove `_(…)_`, `*(…)*` and similar hints of a template."""
    ends, parts, position = _parenthesis_spans(text), [], 0
    for start, end in ends.items():
        if start < position or text[start - 1 : start] not in _EMPHASIS_CHARACTERS:
            continue
        if text[end : end + 1] in _EMPHASIS_CHARACTERS:
            parts.append(text[position:start].rstrip(_EMPHASIS_MARKS))
            position = _skip_characters(text, end, _EMPHASIS_MARKS)
    return "".join(parts) + text[position:]


def _is_hint(text: str) -> bool:
    """Whether the whole text is in parentheses, closed or not."""
    ends, position = _parenthesis_spans(text), _skip_characters(text, 0, _SURROUNDING_CHARACTERS)
    while position < len(text) and text[position] in _OPENING_PARENTHESES:
        position = _skip_characters(text, ends.get(position, len(text)), _SURROUNDING_CHARACTERS)
    return position == len(text)


def _parenthesis_spans(text: str) -> dict[int, int]:
    """Start and end of each closed pair of parentheses, in order."""
    open_at: list[int] = []
    ends: dict[int, int] = {}
    for match in _PARENTHESIS.finditer(text):
        if match[0] in _OPENING_PARENTHESES:
            open_at.append(match.start())
        elif open_at:
            ends[open_at.pop()] = match.end()
    return dict(sorted(ends.items()))


def _skip_characters(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINER: Final = "\u200d"
_BREAKS: Final = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_JOINER_IN_WORD: Final = re.compile(r"(?<=[^\W\d_])[\u200d\ufe00-\ufe0f]+")
_FIELD_ASSIGNMENT: Final = re.compile(
    rf"({'|'.join(PERSONA_FIELDS)})[ \t]*+=[ \t]*+", re.IGNORECASE
)


def _visible_text(text: str) -> str:
    """One line of visible text; joiners within emoji are kept."""
    if text.isascii() and text.isprintable():
        return text
    visible = (
        character
        for character in _BREAKS.sub(" ", text)
        if character == _JOINER or unicodedata.category(character) not in _INVISIBLE_CATEGORIES
    )
    return _JOINER_IN_WORD.sub("", "".join(visible))


def _neutralize_fields(value: str) -> str:
    """Prevent a value from starting another field: `, name=X` becomes `, name: X`."""
    return _FIELD_ASSIGNMENT.sub(r"\1: ", value).rstrip()
