"""What IDENTITY.md says of an agent beside its name, and how one such line is changed alone."""

from __future__ import annotations

import unicodedata
from typing import Final

from carrel.core.markdown import labelled_lines
from carrel.core.overlay.placeholders import sanitised

FIELDS: Final = ("creature", "vibe", "emoji", "avatar")
"""What may be changed one by one. The name is none of them: it follows a rename."""

_SYMBOLS: Final = frozenset({"So", "Sk"})
_JOINER, _SELECTOR = "\u200d", "\ufe0f"
_MOST: Final = 16
"""Code points of an emoji."""


def with_field(text: bytes, field: str, value: str) -> bytes | None:
    """The file with another value of one of FIELDS; None where it has no line for that.

    The value is shown and nothing else: it is no placeholder, no markdown and no second line.
    """
    try:
        file = text.decode()
    except UnicodeDecodeError:
        return None
    found = labelled_lines.find(file, field)
    return None if found is None else labelled_lines.replaced(file, found, shown(value)).encode()


def shown(value: str) -> str:
    """The value as it is written into the file."""
    text = value.strip()
    return text if _is_emoji(text) else sanitised(value)


def _is_emoji(text: str) -> bool:
    """Whether it is one of those that some characters which cannot be seen hold together."""
    seen = text.replace(_JOINER, "").replace(_SELECTOR, "")
    return (
        0 < len(text) <= _MOST
        and text[0] in seen
        and text[-1] != _JOINER
        and all(unicodedata.category(character) in _SYMBOLS for character in seen)
        and sanitised(seen) == seen
    )
