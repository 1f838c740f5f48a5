"""Any text as one segment of a path, and back."""

from __future__ import annotations

import unicodedata
from typing import Final
from urllib.parse import quote, unquote

EMPTY: Final = "%"
"""The segment of an empty text."""
MAX_BYTES: Final = 255
_UNSAFE: Final = frozenset("%/\\.")


def to_segment(text: str, *, suffix: str = "") -> str:
    """A segment from which ``from_segment`` restores the text.

    Letters, digits and most signs stay as they are. Raises ValueError if it is too long for a
    path, or not Unicode.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!a} is not valid Unicode") from None
    segment = _encode(text, is_ascii=False) + suffix
    if unicodedata.normalize("NFC", segment) != segment:
        segment = _encode(text, is_ascii=True) + suffix
    if (length := len(segment.encode())) > MAX_BYTES:
        raise ValueError(f"{text[:40]!a}… is too long for a path: {length} of {MAX_BYTES} bytes")
    return segment


def from_segment(segment: str, *, suffix: str = "") -> str:
    segment = segment.removesuffix(suffix)
    return "" if segment == EMPTY else unquote(segment)


def _encode(text: str, *, is_ascii: bool) -> str:
    if not text:
        return EMPTY
    return "".join(
        char if _is_plain(char) and not (is_ascii and ord(char) > 127) else _escape(char)
        for char in text
    )


def _is_plain(char: str) -> bool:
    return char not in _UNSAFE and char.isprintable()


def _escape(char: str) -> str:
    return "%2E" if char == "." else quote(char, safe="")
