"""The lines of a markdown text, and which of them are code in a fence and so only examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MARK: Final = "\ufeff"
"""What some editors put before everything else."""
BULLET: Final = r"(?:[-*+]|[0-9]{1,9}[.)])"
END: Final = re.compile(r"\r\n|\r|\n")

_LINE: Final = re.compile(r"((?>(?: {0,3}> ?){0,99}))([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
"""The marks of the quotes that a line stands in, and its text."""
_FENCE: Final = re.compile(
    rf"(?P<item> {{0,3}}{BULLET} {{1,4}})?(?P<indent> {{0,3}})(?P<fence>`{{3,}}+(?!.*`)|~{{3,}}+)"
)


class MarkdownLine(NamedTuple):
    start: int
    text: str
    """Without its end, and without the marks of the quote that it stands in."""
    end: int
    """Where the text ends, and its line end begins."""
    next: int
    depth: int
    """Of how many quotes it is part."""


def line_end(text: str) -> str:
    """How the lines of a text end, by the first of them."""
    found = END.search(text)
    return found[0] if found else "\n"


def lines(file: str) -> Iterator[MarkdownLine]:
    for found in _LINE.finditer(file, len(MARK) if file.startswith(MARK) else 0):
        start, end = found.span()
        if start == end:
            return
        marks, text = found.groups()
        yield MarkdownLine(start, text, found.end(2), end, marks.count(">") if marks else 0)


class _Fence(NamedTuple):
    closing: re.Pattern[str]
    depth: int
    indent: int
    """How far its lines are indented for the list item that holds it."""

    def holds(self, line: MarkdownLine) -> bool:
        """Whether a line is still in the quote and the list item in which this was opened."""
        blanks = len(line.text) - len(line.text.lstrip(" "))
        return line.depth >= self.depth and (blanks >= self.indent or not line.text.strip())


def _opened(line: MarkdownLine) -> _Fence | None:
    found = _FENCE.match(line.text) if line.text else None
    if found is None:
        return None
    mark = found["fence"]
    closing = re.compile(rf" *+{mark[0]}{{{len(mark)},}}+[ \t]*+\Z")
    return _Fence(closing, line.depth, len(found["item"] or ""))


def outside_fences(file: str) -> Iterator[MarkdownLine]:
    """The lines that say something themselves."""
    fence: _Fence | None = None
    for line in lines(file):
        if fence and fence.holds(line):
            fence = None if fence.closing.match(line.text) else fence
            continue
        fence = _opened(line)
        if fence is None:
            yield line
