"""Characters that a reader cannot see: controls, bidi, zero-width, tags and blanks."""

from __future__ import annotations

import re
from typing import Final


def character_class(*ranges: tuple[int, int]) -> str:
    """Content of a regular expression's character class."""
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


CONTROLS: Final = character_class((0x00, 0x09), (0x0B, 0x1F), (0x7F, 0x9F), (0xD800, 0xDFFF))
"""Control characters and surrogates, without the line feed."""
IGNORABLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\ufeff\uffa0"
    + character_class((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F))
    + character_class((0xFE00, 0xFE0F), (0xFFF0, 0xFFFB), (0x13430, 0x13438), (0x1BCA0, 0x1BCA3))
    + character_class((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF))
)
"""Zero-width, bidi, tag and variation characters and other default-ignorables."""
BLANKS: Final = "\u2800\U0001d159"
"""Symbols without ink."""
NONCHARACTERS: Final = character_class(
    (0xFDD0, 0xFDEF), *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000))
)

_STYLED_SYMBOL: Final = "[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff]\ufe0f"
"""A symbol with the selector that makes it an emoji, which a reader sees."""
_CHARACTER: Final = re.compile(f"{_STYLED_SYMBOL}|.", re.DOTALL)
_UNUSUAL: Final = re.compile(r"[^\n\t -~]+")
_HIDDEN: Final = re.compile(f"[{CONTROLS}{IGNORABLE}{BLANKS}{NONCHARACTERS}]")


def show_hidden_characters(text: str) -> str:
    """Text with every hidden character as its code point, such as `⟨U+202E⟩`.

    Line feeds, tabs and spaces stay; other white space counts as hidden.
    """
    return _UNUSUAL.sub(_show_run, text)


def _show_run(match: re.Match[str]) -> str:
    run = match[0]
    if run.isprintable() and not _HIDDEN.search(run):
        return run
    return _CHARACTER.sub(_show_character, run)


def _show_character(match: re.Match[str]) -> str:
    char, selector = match[0][0], match[0][1:]
    if char.isprintable() and not _HIDDEN.match(char):
        return char + selector
    return f"⟨U+{ord(char):04X}⟩" + selector
