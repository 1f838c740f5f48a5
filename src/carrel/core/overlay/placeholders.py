"""Placeholders such as `{{AGENT_NAME}}` and the escaping of their values.

Values come from people and end up in prompts, so each is reduced to one line of visible text in
which no character acts as markdown or as a placeholder
(docs/decisions/0015-placeholder-values-are-escaped.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

from msgspec import Struct

from carrel.core.hidden_characters import (
    BLANKS,
    CONTROLS,
    IGNORABLE,
    NONCHARACTERS,
    character_class,
)

TOKENS: Final = (
    "AGENT_NAME",
    "TENANT_NAME",
    "HUMAN_NAME",
    "HUMAN_EMAIL",
    "HUMAN_TITLE",
    "HUMAN_TIMEZONE",
    "HUMAN_PRONOUNS",
)
_MAX_CACHED_BYTES: Final = 32 * 2**10
"""Larger contents are split without caching."""

MAX_VALUE_LENGTH: Final = 500
"""Code points of a value that are rendered, before escaping."""

EMPTY_VALUE: Final = "—"

_ESCAPING_VERSION: Final = b"1"
"""Part of every key; increase it when the same value is escaped differently."""

_TOKEN: Final = re.compile(r"\{\{(" + "|".join(TOKENS) + r")\}\}(?=([.)](?:\s|\Z))?)")


class PlaceholderValues(Struct, frozen=True, gc=False, cache_hash=True):
    """Unescaped values of the placeholders."""

    agent_name: str | None = None
    tenant_name: str | None = None
    human_name: str | None = None
    human_email: str | None = None
    human_title: str | None = None
    human_timezone: str | None = None
    human_pronouns: str | None = None

    @property
    def escaped_values(self) -> Mapping[str, str]:
        """Escaped value of each of TOKENS."""
        return _render_values(self)[0]

    @property
    def key(self) -> str:
        """Hash of the escaped values, for cache keys and ETags."""
        return _render_values(self)[1]


@lru_cache(maxsize=4096)
def _render_values(variables: PlaceholderValues) -> tuple[Mapping[str, str], str]:
    """Escaped values and their hash, computed once per set of values."""
    rendered = {token: sanitize_value(getattr(variables, token.lower())) for token in TOKENS}
    encoded = b"\n".join((_ESCAPING_VERSION, *(value.encode() for value in rendered.values())))
    return rendered, sha256(encoded).hexdigest()[:32]


def render(text: str, variables: PlaceholderValues) -> str:
    """Fill the placeholders of a text in one pass; values are not scanned again."""
    return join_parts(_split_text(text), variables)


def has_placeholders(content: bytes) -> bool:
    """Whether rendering would fill a placeholder of stored content."""
    return b"{{" in content and len(split_template(content)) > 1


def disable_tokens(text: str) -> str:
    """Text in which no placeholder is filled; a backslash separates its first two braces."""
    return _TOKEN.sub(lambda token: "{\\" + token[0][1:], text)


def render_bytes(content: bytes, variables: PlaceholderValues) -> bytes:
    """Fill the placeholders of stored content; content that is not UTF-8 is unchanged."""
    parts = split_template(content)
    return content if len(parts) < 2 else join_parts(parts, variables).encode()


def split_template(content: bytes) -> tuple[TemplatePart, ...]:
    """Split content at its placeholders; fewer than two parts if there are none."""
    return _split_cached(content) if len(content) <= _MAX_CACHED_BYTES else _split_bytes(content)


class TemplatePart(Struct, frozen=True, gc=False):
    """A literal text and the token after it; the last part has no token."""

    text: str
    token: str
    begins_list: bool
    """Whether a number at the token would start a numbered list."""


def join_parts(template_parts: Iterable[TemplatePart], variables: PlaceholderValues) -> str:
    values, parts = variables.escaped_values, []
    for part in template_parts:
        parts.append(part.text)
        if part.token:
            value = values[part.token]
            parts.append(value)
            if part.begins_list and value.isascii() and value.isdigit():
                parts.append("\\")
    return "".join(parts)


def _split_text(text: str) -> tuple[TemplatePart, ...]:
    parts, position = [], 0
    for token in _TOKEN.finditer(text):
        begins_list = bool(token[2]) and _is_line_start(token)
        parts.append(TemplatePart(text[position : token.start()], token[1], begins_list))
        position = token.end()
    return (*parts, TemplatePart(text[position:], "", False))


def _split_bytes(content: bytes) -> tuple[TemplatePart, ...]:
    """Empty for content that is not text or has no placeholders."""
    if b"{{" not in content:
        return ()
    try:
        return _split_text(content.decode())
    except UnicodeDecodeError:
        return ()


_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9]+(?: [A-Za-z0-9]+)*")
"""Values that need no cleaning and no escaping."""

_split_cached: Final = lru_cache(maxsize=512)(_split_bytes)
"""Template texts are shared by many agents."""


@lru_cache(maxsize=4096)
def sanitize_value(value: str | None) -> str:
    """Escape a value so that it is plain text on one line anywhere in markdown."""
    if value and len(value) <= MAX_VALUE_LENGTH and _PLAIN_NAME.fullmatch(value):
        return value
    text = clean_text(value or "")
    if len(text) > MAX_VALUE_LENGTH:
        text = text[: MAX_VALUE_LENGTH - 1].rstrip() + "…"
    return _STRUCTURAL.sub(_escape, text) or EMPTY_VALUE


_BREAKS: Final = re.compile("[\t\n\v\f\r\x85\u2028\u2029]")

_BRACE_LOOKALIKES: Final = (
    "\ufe37\ufe38\ufe5b\ufe5c\uff5b\uff5d\u2774\u2775\u2983\u2984\U0001d114"
    + (character_class((0x23A7, 0x23AD), (0x23B0, 0x23B1), (0x23DE, 0x23DF)))
)
"""Characters that look like curly brackets or parts of them."""

_NO_INK: Final = f"{CONTROLS}{IGNORABLE}{BLANKS}{NONCHARACTERS}"
_INVISIBLE: Final = re.compile(f"(?P<joiner>(?!))|[{_NO_INK}{_BRACE_LOOKALIKES}]")
_HIDDEN: Final = re.compile(
    # joiners of letters and emoji, and selectors of emoji, show in the character before them
    f"(?P<joiner>(?<=[^\x00-\x7f{_NO_INK}])[\u200c\u200d\ufe0e\ufe0f]|(?<=\ufe0f)\u200d)|[{_NO_INK}]"
)

_MAX_NORMALIZED_LENGTH: Final = 4 * MAX_VALUE_LENGTH + 4
"""Yields more than MAX_VALUE_LENGTH in NFC.

Bounds normalization, which can be quadratic.
"""

_ANSI: Final = re.compile("(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]")
_ANSI_STRING: Final = re.compile("\x1b[]NOPX^_]"), re.compile("\x1b\\\\|\x07")
_COMMENT: Final = re.compile("<!--"), re.compile("-->")


def clean_text(value: str) -> str:
    """One line of visible text in NFC, without characters that look like braces.

    Normalizes last, since removals can join characters.
    """
    return _clean(value, _INVISIBLE)


def flatten_text(value: str) -> str:
    """One line of visible text with single spaces, otherwise unchanged."""
    return " ".join(_clean(value, _HIDDEN).split())


def _clean(value: str, removed: re.Pattern[str]) -> str:
    text = _remove_enclosed(_ANSI.sub("", value), *_ANSI_STRING)
    text = removed.sub(lambda match: match["joiner"] or "", _BREAKS.sub("\n", text))
    lines = (line.strip() for line in _remove_enclosed(text, *_COMMENT).split("\n"))
    return unicodedata.normalize(
        "NFC", " ".join(line for line in lines if line)[:_MAX_NORMALIZED_LENGTH]
    )


def _remove_enclosed(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Remove everything between opening and closing; unclosed openings stay."""
    parts, position = [], 0
    while (start := opening.search(text, position)) and (end := closing.search(text, start.end())):
        parts.append(text[position : start.start()])
        position = end.end()
    return "".join(parts) + text[position:]


_STRUCTURAL: Final = re.compile(
    r"[\\`*_{}\[\]()#+\-!|><~]"
    r"|\A[=:]"  # heading underline; definition or container
    r"|\A[0-9]*+\.(?=\s|\Z)"  # numbered list, such as `1.`
    r"|(?<=www)\.|(?<=/)/"  # autolinks: www.… and …://…
    r"|&(?=[A-Z][A-Z0-9]*+;|[A-Z][A-Z0-9]++\Z|\Z)|\A[A-Z0-9]*+;",  # character reference
    re.IGNORECASE,
)
_WORD_JOINERS: Final = "_-+"


def _escape(match: re.Match[str]) -> str:
    """Escape with a backslash, or with a character reference where a backslash fails.

    A backslash does not stop a backtick from ending a code span or a pipe from forming a table, and
    at the end of a value it would escape the character after it.
    """
    character, text, position = match[0][-1], match.string, match.end() - 1
    before, after = text[max(position - 1, 0) : position], text[position + 1 : position + 2]
    if character in _WORD_JOINERS and before.isalnum() and after.isalnum():
        return character
    if character in "`|" or (character == "\\" and not after):
        return f"&#{ord(character)};"
    return f"{match[0][:-1]}\\{character}"


_LINE_START: Final = re.compile(r"[\s>*+\-.)0-9A-Z_{}]*")


def _is_line_start(token: re.Match[str]) -> bool:
    before = token.string[max(token.start() - 64, 0) : token.start()]
    line = re.split(r"[\r\n]", before)[-1]
    return bool(_LINE_START.fullmatch(line))
