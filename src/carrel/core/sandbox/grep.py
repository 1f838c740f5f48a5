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
_MAX_COUNT: Final = 10_000_000
_MAX_GLOBS: Final = 64
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
        return any(compile_glob(glob).fullmatch(text) for glob in expand_braces(self.glob))


@lru_cache(maxsize=256)
def expand_braces(glob: str) -> tuple[str, ...]:
    """Return the globs without braces that a glob stands for.

    A glob with more than two braces, or that stands for more than 64, is returned unchanged.
    """
    opening = glob.find("{")
    closing = glob.find("}", opening)
    if opening < 0 or closing < 0 or glob.count("{") > 2:
        return (glob,)
    options = glob[opening + 1 : closing].split(",")
    ends = expand_braces(glob[closing + 1 :])
    if len(options) * len(ends) > _MAX_GLOBS:
        return (glob,)
    return tuple(glob[:opening] + option + end for option in options for end in ends)


@lru_cache(maxsize=64)
def compile_pattern(pattern: str, *, ignore_case: bool = False) -> LinearRegex:
    r"""Compile a pattern in RE2's syntax; raises ValidationError.

    No match spans lines. ``\C`` is refused: it matches single bytes, those of line feeds too.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValidationError(f"Invalid pattern: it has more than {MAX_PATTERN_CHARS} characters")
    if _ANY_BYTE.search(pattern):
        raise ValidationError(r"Invalid pattern: \C is not supported")
    try:
        return compile_regex(f"(?i){pattern}" if ignore_case else pattern, in_lines=True)
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


class FileSearch:
    """Search in one file whose lines are given in parts."""

    def __init__(self, query: GrepQuery, name: str, max_bytes: int) -> None:
        """``name`` is empty for a single-file query."""
        self._query, self._name = query, name
        self._regex = compile_pattern(query.pattern, ignore_case=query.ignore_case)
        self._prefix = name.encode() + b":" if name else b""
        self._max_bytes, self._lines_left = max_bytes, query.max_lines(max_bytes)
        self._first, self._matches, self._size = 1, 0, 0
        self._lines: list[bytes] = []

    @property
    def is_done(self) -> bool:
        """Whether further lines would not change the output."""
        return self._lines_left <= 0 or self._size > self._max_bytes

    def feed(self, lines: bytes) -> None:
        """Search complete lines."""
        numbers = matching_lines(self._regex, lines, self._lines_left)
        self._matches += len(numbers)
        self._lines_left -= len(numbers)
        if self._query.mode is GrepOutput.CONTENT:
            for number, line in zip(numbers, _lines_at(lines, numbers), strict=True):
                self._add_line(self._first + number - 1, line)
        self._first += lines.count(b"\n")

    def _add_line(self, number: int, line: bytes) -> None:
        if self._size > self._max_bytes:
            return
        printed = b"%d:%b" % (number, line) if self._query.line_numbers else line
        self._lines.append(self._prefix + printed + b"\n")
        self._size += len(self._lines[-1])

    def output(self) -> bytes:
        """Output for the file, empty without a match."""
        if not self._matches:
            return b""
        match self._query.mode:
            case GrepOutput.FILES:
                return (self._name or self._query.root).encode() + b"\n"
            case GrepOutput.COUNT:
                return b"%b%d\n" % (self._prefix, self._matches)
            case GrepOutput.CONTENT:
                return b"".join(self._lines)


def _lines_at(content: bytes, numbers: Sequence[int]) -> Iterator[bytes]:
    start, current = 0, 1
    for number in numbers:
        while current < number:
            start = content.index(b"\n", start) + 1
            current += 1
        end = content.find(b"\n", start)
        yield content[start:] if end < 0 else content[start:end]
