"""Lines of a markdown text, and which of them are in code, comments or front matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile
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
_COMMENT: Final = re.compile(" {0,3}<!--")
_COMMENT_END: Final = re.compile(".*-->")


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


class _Block(NamedTuple):
    """Code fence or HTML comment that starts in a line."""

    closing: re.Pattern[str]
    quote_depth: int
    indent: int = 0
    """Indentation by the list item that contains the fence."""
    is_closed: bool = False
    """Whether it also ends in that line."""

    def contains(self, line: MarkdownLine) -> bool:
        """Whether a line is still in the quote and list item of the block."""
        blanks = len(line.text) - len(line.text.lstrip(" "))
        return line.quote_depth >= self.quote_depth and (
            blanks >= self.indent or not line.text.strip()
        )


def _open_fence(line: MarkdownLine) -> _Block | None:
    match = _FENCE.match(line.text) if line.text else None
    if match is None:
        return None
    marker = match["fence"]
    closing = re.compile(rf" *+{marker[0]}{{{len(marker)},}}+[ \t]*+\Z")
    return _Block(closing, line.quote_depth, len(match["item"] or ""))


def _open_comment(line: MarkdownLine) -> _Block | None:
    match = _COMMENT.match(line.text)
    if match is None:
        return None
    is_closed = line.text.find("-->", match.end() - 2) >= 0
    return _Block(_COMMENT_END, line.quote_depth, is_closed=is_closed)


def lines_outside_fences(file: str) -> Iterator[MarkdownLine]:
    """Lines that are not part of a code fence."""
    return _lines_outside(iter_lines(file), _open_fence)


def content_lines(file: str) -> Iterator[MarkdownLine]:
    """Lines outside front matter, code fences and HTML comments."""
    start = front_matter_end(file)
    lines = (line for line in iter_lines(file) if line.start >= start)
    return _lines_outside(lines, lambda line: _open_fence(line) or _open_comment(line))


def front_matter_end(file: str) -> int:
    """Start of the first line after the front matter; 0 if there is none."""
    lines = dropwhile(lambda line: not line.text.strip(), iter_lines(file))
    first = next(lines, None)
    if first is None or first.quote_depth or first.text.rstrip() != "---":
        return 0
    return next((line.next_start for line in lines if line.text.rstrip() in {"---", "..."}), 0)


def _lines_outside(
    lines: Iterable[MarkdownLine], open_block: Callable[[MarkdownLine], _Block | None]
) -> Iterator[MarkdownLine]:
    block: _Block | None = None
    for line in lines:
        if block and block.contains(line):
            block = None if block.closing.match(line.text) else block
            continue
        block = open_block(line)
        if block is None:
            yield line
        elif block.is_closed:
            block = None
