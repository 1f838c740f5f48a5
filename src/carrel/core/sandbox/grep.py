"""Lines of a text that match a pattern, found in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import compile_glob
from carrel.core.search.linear_regex import InvalidRegex, LinearRegex, compile_regex

MAX_PATTERN_CHARS: Final = 1000
MAX_BLOCK_MATCHES: Final = 100_000
"""Matches of a search across lines of which several may begin in one line; bounds its time."""
_MAX_COUNT: Final = 10_000_000
_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_RE2_ERRORS: Final = {
    "missing )": "a ( is not closed",
    "missing ]": "a [ is not closed",
    "unexpected )": "a ) closes nothing",
    "invalid perl operator": "look-around and this kind of group are not supported",
    "no argument for repetition operator": "there is nothing for {} to repeat",
    "bad repetition operator": "a repetition follows another: {}",
    "invalid escape sequence": "{} is not supported",
    "pattern too large - compile failed": "it is too large",
}
"""Messages by the part of RE2's message before the colon.

The part after the colon replaces the braces.
"""


class GrepOutput(StrEnum):
    """What a search returns of the files with matches."""

    FILES = "files_with_matches"
    CONTENT = "content"
    COUNT = "count"


class GrepQuery(Struct, frozen=True):
    pattern: str
    root: str = ""
    """A directory or a single file; empty for the whole workspace."""
    glob: str = ""
    ignore_case: bool = False
    mode: GrepOutput = GrepOutput.FILES
    line_numbers: bool = False
    """Whether lines are printed with their numbers."""
    before: int = 0
    """Lines printed before each match."""
    after: int = 0
    multiline: bool = False
    """Whether a match may span lines."""
    head_limit: int = 0
    """Printed rows, over all files; 0: any number."""

    def max_lines(self, max_bytes: int) -> int:
        """Return how many lines of a file fill an output of that many bytes."""
        return {GrepOutput.FILES: 1, GrepOutput.CONTENT: max_bytes + 1}.get(self.mode, _MAX_COUNT)

    def includes(self, path: Path) -> bool:
        """Whether the glob selects a file.

        A glob with a slash matches the path, otherwise the name.
        """
        if ".git" in path.text.split("/"):
            return False
        if not self.glob:
            return True
        text = (path.text if "/" in self.glob else path.name).encode()
        return compile_glob(self.glob).fullmatch(text) is not None


@lru_cache(maxsize=64)
def compile_pattern(
    pattern: str, *, ignore_case: bool = False, multiline: bool = False
) -> LinearRegex:
    r"""Compile a pattern in RE2's syntax; raises ValidationError.

    Only with `multiline` a match may span lines, and `.` matches a line feed. ``\C`` is refused: it
    matches single bytes, those of line feeds too.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValidationError(f"Invalid pattern: it has more than {MAX_PATTERN_CHARS} characters")
    if _ANY_BYTE.search(pattern):
        raise ValidationError(r"Invalid pattern: \C is not supported")
    try:
        flags = "(?i)" if ignore_case else ""
        if multiline:
            return compile_regex(f"(?ms){flags}(?:{pattern})")
        return compile_regex(f"{flags}{pattern}", in_lines=True)
    except InvalidRegex as error:
        kind, _, argument = str(error).partition(": ")
        message = _RE2_ERRORS.get(kind, "{}").format(argument if kind in _RE2_ERRORS else error)
        raise ValidationError(f"Invalid pattern: {message}") from None


def matching_lines(regex: LinearRegex, content: bytes, limit: int) -> list[int]:
    """Return the numbers of the lines that match, from 1, at most ``limit`` of them."""
    numbers: list[int] = []
    number, counted, position = 1, 0, 0
    # No line follows the last line feed.
    end = len(content) - (not content or content.endswith(b"\n"))
    while len(numbers) < limit and (match := regex.search(content, position)):
        start = match.start()
        if start > end:
            break
        number += content.count(b"\n", counted, start)
        counted = start
        numbers.append(number)
        position = content.find(b"\n", start) + 1
        if not position:
            break
    return numbers


def matching_blocks(regex: LinearRegex, content: bytes, limit: int) -> list[int]:
    """Return the numbers of all lines that matches span, from 1, until there are `limit`.

    After MAX_BLOCK_MATCHES only one match that begins in a line is looked for.
    """
    numbers: list[int] = []
    number, counted, position = 1, 0, 0
    further_matches = MAX_BLOCK_MATCHES
    # No line follows the last line feed.
    end = len(content) - (not content or content.endswith(b"\n"))
    while len(numbers) < limit and position <= end and (match := regex.search(content, position)):
        start = match.start()
        if start > end:
            break
        last_byte = min(max(start, match.end() - 1), end)
        first = number + content.count(b"\n", counted, start)
        number, counted = first + content.count(b"\n", start, last_byte), last_byte
        numbers += range(max(first, numbers[-1] + 1) if numbers else first, number + 1)
        position = _after_match(content, start, match.end(), further_matches)
        further_matches -= 1
        if not position:
            break
    return numbers


def _after_match(content: bytes, start: int, end: int, further_matches: int) -> int:
    """Return where the search goes on: in the line in which a match ends, or 0 after the last."""
    if further_matches > 0:
        return max(end, start + 1)
    return content.find(b"\n", max(start, end - 1)) + 1


class GrepRow(Struct, frozen=True):
    """A printed row: a file, a count, or a line."""

    path: str
    line: int | None = None
    text: bytes = b""
    is_match: bool = True
    """False for a line of context."""
    count: int | None = None


class FileSearch:
    """Search in one file whose lines are given in parts."""

    def __init__(self, query: GrepQuery, name: str, max_bytes: int) -> None:
        self._query, self._name = query, name
        self._regex = compile_pattern(
            query.pattern, ignore_case=query.ignore_case, multiline=query.multiline
        )
        self._max_bytes, self._lines_left = max_bytes, query.max_lines(max_bytes)
        self._first, self._matches, self._size = 1, 0, 0
        self._rows: list[GrepRow] = []
        self._recent: list[bytes] = []
        """The last lines before the next part, for context."""
        self._after_left = 0

    @property
    def is_done(self) -> bool:
        """Whether further lines would not change the output."""
        return (self._lines_left <= 0 and not self._after_left) or self._size > self._max_bytes

    def feed(self, lines: bytes) -> None:
        """Search complete lines; with `multiline`, the whole file at once."""
        search = matching_blocks if self._query.multiline else matching_lines
        numbers = search(self._regex, lines, self._lines_left)
        self._matches += len(numbers)
        self._lines_left -= len(numbers)
        if self._query.mode is GrepOutput.CONTENT:
            if self._query.before or self._query.after:
                self._add_with_context(lines, frozenset(numbers))
            else:
                for number, line in zip(numbers, _lines_at(lines, numbers), strict=True):
                    self._add_line(self._first + number - 1, line)
        self._first += lines.count(b"\n")

    def _add_with_context(self, content: bytes, numbers: frozenset[int]) -> None:
        lines = content.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            position = self._first + number - 1
            if number in numbers:
                for offset, earlier in enumerate(self._recent, position - len(self._recent)):
                    self._add_line(offset, earlier, is_match=False)
                self._recent = []
                self._add_line(position, line)
                self._after_left = self._query.after
            elif self._after_left:
                self._add_line(position, line, is_match=False)
                self._after_left -= 1
            elif self._query.before:
                self._recent = [*self._recent, line][-self._query.before :]

    def _add_line(self, number: int, line: bytes, *, is_match: bool = True) -> None:
        if self._size > self._max_bytes:
            return
        self._rows.append(GrepRow(self._name, number, line, is_match))
        self._size += len(line) + 1

    def rows(self) -> Sequence[GrepRow]:
        """Rows of the file, none without a match."""
        if not self._matches:
            return ()
        match self._query.mode:
            case GrepOutput.FILES:
                return (GrepRow(self._name),)
            case GrepOutput.COUNT:
                return (GrepRow(self._name, count=self._matches),)
            case GrepOutput.CONTENT:
                return self._rows


def format_rows(query: GrepQuery, rows: Sequence[GrepRow]) -> bytes:
    """Rows as text; a query of a single file prints no path."""
    lines: list[bytes] = []
    previous: GrepRow | None = None
    for row in rows:
        if previous is not None and (query.before or query.after) and _is_apart(previous, row):
            lines.append(b"--\n")
        lines.append(_format_row(query, row))
        previous = row
    return b"".join(lines)


def _is_apart(previous: GrepRow, row: GrepRow) -> bool:
    """Whether lines between two rows are left out."""
    if row.line is None or previous.line is None:
        return False
    return previous.path != row.path or row.line != previous.line + 1


def _format_row(query: GrepQuery, row: GrepRow) -> bytes:
    separator = b":" if row.is_match else b"-"
    name = row.path.encode()
    prefix = b"" if row.path == query.root else name + separator
    if row.count is not None:
        return b"%b%d\n" % (prefix, row.count)
    if row.line is None:
        return name + b"\n"
    number = b"%d%b" % (row.line, separator) if query.line_numbers else b""
    return prefix + number + row.text + b"\n"


def _lines_at(content: bytes, numbers: Sequence[int]) -> Iterator[bytes]:
    start, current = 0, 1
    for number in numbers:
        while current < number:
            start = content.index(b"\n", start) + 1
            current += 1
        end = content.find(b"\n", start)
        yield content[start:] if end < 0 else content[start:end]
