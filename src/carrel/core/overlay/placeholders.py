r"""Placeholders such as `{{AGENT_NAME}}`, and what a person may be called without doing harm.

Whoever names an agent or fills in a profile writes into the prompts of agents. So a value is shown
and nothing else: it is one line, holds nothing that cannot be seen, and no character of it acts as
markdown or as a placeholder (docs/decisions/0015-placeholder-values-are-escaped.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

from msgspec import Struct

TOKENS: Final = (
    "AGENT_NAME",
    "TENANT_NAME",
    "HUMAN_NAME",
    "HUMAN_EMAIL",
    "HUMAN_TITLE",
    "HUMAN_TIMEZONE",
    "HUMAN_PRONOUNS",
)
_OFTEN: Final = 32 * 2**10
"""Bytes up to which a content is remembered in pieces."""

LONGEST: Final = 500
"""Code points of a value that are shown, before any is escaped."""

NOTHING: Final = "—"

_RULES: Final = b"1"
"""Part of every key: to be raised when the same value comes to be written in another way."""

_TOKEN: Final = re.compile(r"\{\{(" + "|".join(TOKENS) + r")\}\}(?=([.)](?:\s|\Z))?)")


class PlaceholderValues(Struct, frozen=True, gc=False, cache_hash=True):
    """What the placeholders stand for, as people wrote it."""

    agent_name: str | None = None
    tenant_name: str | None = None
    human_name: str | None = None
    human_email: str | None = None
    human_title: str | None = None
    human_timezone: str | None = None
    human_pronouns: str | None = None

    @property
    def shown(self) -> Mapping[str, str]:
        """What is written in place of each of TOKENS."""
        return _prepared(self)[0]

    @property
    def key(self) -> str:
        """Changes whenever any text that is rendered with these could."""
        return _prepared(self)[1]


@lru_cache(maxsize=4096)
def _prepared(variables: PlaceholderValues) -> tuple[Mapping[str, str], str]:
    """Sanitised once for all the files of a workspace, and named by what came of it."""
    shown = {token: sanitised(getattr(variables, token.lower())) for token in TOKENS}
    written = b"\n".join((_RULES, *(value.encode() for value in shown.values())))
    return shown, sha256(written).hexdigest()[:32]


def render(text: str, variables: PlaceholderValues) -> str:
    """The text with its placeholders filled in, in one pass: values are never looked at again."""
    return joined(_split(text), variables)


def render_bytes(content: bytes, variables: PlaceholderValues) -> bytes:
    """The same for content as it is stored; what is not UTF-8 is no text and stays as it is."""
    pieces = split(content)
    return content if len(pieces) < 2 else joined(pieces, variables).encode()


def split(content: bytes) -> tuple[TemplatePart, ...]:
    """Content at its placeholders: two pieces or more, where there is anything to fill in."""
    return _split_once(content) if len(content) <= _OFTEN else _split_bytes(content)


class TemplatePart(Struct, frozen=True, gc=False):
    """Some text, and the token after it; the last piece has none."""

    text: str
    token: str
    counts: bool
    """Whether a number there, by the full stop that the text has after it, would begin a list."""


def joined(pieces: Iterable[TemplatePart], variables: PlaceholderValues) -> str:
    shown, parts = variables.shown, []
    for piece in pieces:
        parts.append(piece.text)
        if piece.token:
            value = shown[piece.token]
            parts.append(value)
            if piece.counts and value.isascii() and value.isdigit():
                parts.append("\\")
    return "".join(parts)


def _split(text: str) -> tuple[TemplatePart, ...]:
    pieces, at = [], 0
    for token in _TOKEN.finditer(text):
        counts = bool(token[2]) and _begins_a_line(token)
        pieces.append(TemplatePart(text[at : token.start()], token[1], counts))
        at = token.end()
    return (*pieces, TemplatePart(text[at:], "", False))


def _split_bytes(content: bytes) -> tuple[TemplatePart, ...]:
    """Nothing of what is no text, or has nothing to fill in."""
    if b"{{" not in content:
        return ()
    try:
        return _split(content.decode())
    except UnicodeDecodeError:
        return ()


_PLAIN: Final = re.compile(r"[A-Za-z0-9]+(?: [A-Za-z0-9]+)*")
"""Names like most: there is nothing to clean, to cut or to escape."""

_split_once: Final = lru_cache(maxsize=512)(_split_bytes)
"""A template's text is the same for all its followers."""


@lru_cache(maxsize=4096)
def sanitised(value: str | None) -> str:
    """The value as it may stand anywhere in markdown: one line that is only ever text."""
    if value and len(value) <= LONGEST and _PLAIN.fullmatch(value):
        return value
    text = cleaned(value or "")
    if len(text) > LONGEST:
        text = text[: LONGEST - 1].rstrip() + "…"
    return _STRUCTURAL.sub(_escaped, text) or NOTHING


def _between(*ranges: tuple[int, int]) -> str:
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


_BREAKS: Final = re.compile("[\t\n\v\f\r\x85\u2028\u2029]")

_CONTROLS: Final = _between((0x00, 0x09), (0x0B, 0x1F), (0x7F, 0x9F), (0xD800, 0xDFFF))
_IGNORABLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\ufeff\uffa0"
    + _between((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F))
    + _between((0xFE00, 0xFE0F), (0xFFF0, 0xFFFB), (0x13430, 0x13438), (0x1BCA0, 0x1BCA3))
    + _between((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF))
)
"""Zero-width, bidi, tag and variation characters, fillers, and all else Unicode lets be ignored."""

_BLANKS: Final = "\u2800\U0001d159"
_NO_CHARACTERS: Final = _between(
    (0xFDD0, 0xFDEF), *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000))
)
_BRACES: Final = "\ufe37\ufe38\ufe5b\ufe5c\uff5b\uff5d\u2774\u2775\u2983\u2984\U0001d114" + (
    _between((0x23A7, 0x23AD), (0x23B0, 0x23B1), (0x23DE, 0x23DF))
)
"""What looks like a curly bracket or a part of one, and is none."""

_UNSEEN: Final = re.compile(f"[{_CONTROLS}{_IGNORABLE}{_BLANKS}{_NO_CHARACTERS}{_BRACES}]")

_ENOUGH: Final = 4 * LONGEST + 4
"""So many code points make more than LONGEST in NFC, which takes quadratic time for some texts."""

_ANSI: Final = re.compile("(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]")
_ANSI_STRING: Final = re.compile("\x1b[]NOPX^_]"), re.compile("\x1b\\\\|\x07")
_COMMENT: Final = re.compile("<!--"), re.compile("-->")


def cleaned(value: str) -> str:
    """One line of what can be seen, in NFC, which comes last: what is left may have met anew."""
    text = _without(_ANSI.sub("", value), *_ANSI_STRING)
    text = _without(_UNSEEN.sub("", _BREAKS.sub("\n", text)), *_COMMENT)
    lines = (line.strip() for line in text.split("\n"))
    return unicodedata.normalize("NFC", " ".join(line for line in lines if line)[:_ENOUGH])


def _without(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """The text without what is opened and closed; what is never closed stays."""
    kept, at = [], 0
    while (start := opening.search(text, at)) and (end := closing.search(text, start.end())):
        kept.append(text[at : start.start()])
        at = end.end()
    return "".join(kept) + text[at:]


_STRUCTURAL: Final = re.compile(
    r"[\\`*_{}\[\]()#+\-!|><~]"
    r"|\A[=:]"  # underlines a heading; begins a definition or a container
    r"|\A[0-9]*+\.(?=\s|\Z)"  # counts a list, as `1.` does
    r"|(?<=www)\.|(?<=/)/"  # what is linked where it only stands: www.… and …://…
    r"|&(?=[A-Z][A-Z0-9]*+;|[A-Z][A-Z0-9]++\Z|\Z)|\A[A-Z0-9]*+;",  # names a character
    re.IGNORECASE,
)
_WITHIN_A_WORD: Final = "_-+"


def _escaped(found: re.Match[str]) -> str:
    r"""A backslash before it, where it could mean anything; or its number, where that fails.

    A backslash keeps no backtick from ending a code span and no pipe from making a table of the
    line above `---`, and at the end of a value it would take the pipe after it out of its table.
    """
    character, text, at = found[0][-1], found.string, found.end() - 1
    before, after = text[max(at - 1, 0) : at], text[at + 1 : at + 2]
    if character in _WITHIN_A_WORD and before.isalnum() and after.isalnum():
        return character
    if character in "`|" or (character == "\\" and not after):
        return f"&#{ord(character)};"
    return f"{found[0][:-1]}\\{character}"


_BEGINS_A_LINE: Final = re.compile(r"[\s>*+\-.)0-9A-Z_{}]*")


def _begins_a_line(token: re.Match[str]) -> bool:
    before = token.string[max(token.start() - 64, 0) : token.start()]
    line = re.split(r"[\r\n]", before)[-1]
    return bool(_BEGINS_A_LINE.fullmatch(line))
