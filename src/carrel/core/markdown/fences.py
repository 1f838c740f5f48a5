"""Lines of a markdown text, and which of them are inside code fences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

BYTE_ORDER_MARK: Final = "\ufeff"
"""Written by some editors at the start of a file."""
BULLET_PATTERN: Final = r"(?:[-*+]|[0-9]{1,9}[.)])"
LINE_END: Final = re.compile(r"\r\n|\r|\n")

_LINE: Final = re.compile(r"((?>(?: {0,3}> ?){0,99}))([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
"""Quote markers of a line, and its text."""
_FENCE: Final = re.compile(
    rf"(?P<item> {{0,3}}{BULLET_PATTERN} {{1,4}})?"
    r"(?P<indent> {0,3})(?P<fence>`{3,}+(?!.*`)|~{3,}+)"
)


class MarkdownLine(NamedTuple):
    start: int
    text: str
    """Without the line end and the quote markers."""
    end: int
    """End of the text; the line end starts here."""
    next_start: int
    quote_depth: int
    """Number of block quotes around the line."""


def detect_line_end(text: str) -> str:
    """Line end of a text, determined by its first line."""
    match = LINE_END.search(text)
    return match[0] if match else "\n"


def iter_lines(file: str) -> Iterator[MarkdownLine]:
    for match in _LINE.finditer(
        file, len(BYTE_ORDER_MARK) if file.startswith(BYTE_ORDER_MARK) else 0
    ):
        start, end = match.span()
        if start == end:
            return
        quote_marks, text = match.groups()
        yield MarkdownLine(
            start, text, match.end(2), end, quote_marks.count(">") if quote_marks else 0
        )


class _Fence(NamedTuple):
    closing: re.Pattern[str]
    quote_depth: int
    indent: int
    """Indentation by the list item that contains the fence."""

    def contains(self, line: MarkdownLine) -> bool:
        """Whether a line is still in the quote and list item of the fence."""
        blanks = len(line.text) - len(line.text.lstrip(" "))
        return line.quote_depth >= self.quote_depth and (
            blanks >= self.indent or not line.text.strip()
        )


def _open_fence(line: MarkdownLine) -> _Fence | None:
    match = _FENCE.match(line.text) if line.text else None
    if match is None:
        return None
    marker = match["fence"]
    closing = re.compile(rf" *+{marker[0]}{{{len(marker)},}}+[ \t]*+\Z")
    return _Fence(closing, line.quote_depth, len(match["item"] or ""))


def lines_outside_fences(file: str) -> Iterator[MarkdownLine]:
    """Lines that are not part of a code fence."""
    fence: _Fence | None = None
    for line in iter_lines(file):
        if fence and fence.contains(line):
            fence = None if fence.closing.match(line.text) else fence
            continue
        fence = _open_fence(line)
        if fence is None:
            yield line
