"""Editing of single fields in IDENTITY.md, except the name."""

from __future__ import annotations

import unicodedata
from typing import Final

from carrel.core.agents.persona import find_field
from carrel.core.markdown.labelled_lines import replace_value
from carrel.core.overlay.placeholders import sanitize_value

EDITABLE_FIELDS: Final = ("creature", "vibe", "emoji", "avatar")
"""Fields that can be edited singly. The name changes only by renaming the agent."""

_SYMBOL_CATEGORIES: Final = frozenset({"So", "Sk"})
_JOINER, _SELECTOR = "\u200d", "\ufe0f"
_MAX_EMOJI_LENGTH: Final = 16
"""Code points."""


def replace_field(text: bytes, field: str, value: str) -> bytes | None:
    """Replace the value of one of EDITABLE_FIELDS; None if the file has no such line.

    The value is escaped: no placeholder, no markdown, one line.
    """
    try:
        file = text.decode()
    except UnicodeDecodeError:
        return None
    line = find_field(file, field)
    return replace_value(file, line.span, format_value(value)).encode() if line else None


def format_value(value: str) -> str:
    """Value as written into the file."""
    text = value.strip()
    return text if _is_emoji(text) else sanitize_value(value)


def _is_emoji(text: str) -> bool:
    """Whether the text is an emoji, possibly with invisible joiners."""
    visible = text.replace(_JOINER, "").replace(_SELECTOR, "")
    return (
        0 < len(text) <= _MAX_EMOJI_LENGTH
        and text[0] in visible
        and text[-1] != _JOINER
        and all(unicodedata.category(character) in _SYMBOL_CATEGORIES for character in visible)
        and sanitize_value(visible) == visible
    )
