"""Finding the lines of a text that a pattern fits, in time that grows with the text alone."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import matcher
from carrel.core.search.grep_pattern import translate_pattern
from carrel.core.search.linear_regex import LinearRegex, RegexTooComplex, linear


class GrepOutput(StrEnum):
    """What is told of the files in which something was found."""

    FILES = "files_with_matches"
    CONTENT = "content"
    COUNT = "count"


class GrepQuery(Struct, frozen=True):
    """What is searched for, where, and how it is told."""

    pattern: str
    root: str = ""
    """A directory, or one file."""
    glob: str = ""
    ignoring_case: bool = False
    mode: GrepOutput = GrepOutput.FILES
    numbers: bool = False

    def most(self, enough: int) -> int:
        """Lines of one file that have to be found to tell so many bytes: each is one at least."""
        return {GrepOutput.FILES: 1, GrepOutput.CONTENT: enough + 1}.get(self.mode, 10_000_000)

    def searches(self, path: Path) -> bool:
        """Whether a file is looked into: by its name, or by its path where the glob has a slash."""
        if ".git" in path.text.split("/"):
            return False
        if not self.glob:
            return True
        text = (path.text if "/" in self.glob else path.name).encode()
        return any(matcher(each).fullmatch(text) for each in alternatives(self.glob))


_MOST: Final = 64


@lru_cache(maxsize=256)
def alternatives(glob: str) -> tuple[str, ...]:
    """A glob without braces for each that one with braces means, if they are not too many."""
    opening = glob.find("{")
    closing = glob.find("}", opening)
    if opening < 0 or closing < 0 or glob.count("{") > 2:
        return (glob,)
    middles = glob[opening + 1 : closing].split(",")
    rest = alternatives(glob[closing + 1 :])
    if len(middles) * len(rest) > _MOST:
        return (glob,)
    return tuple(glob[:opening] + middle + each for middle in middles for each in rest)


def format_matches(wanted: GrepQuery, name: str, content: bytes, found: Sequence[int]) -> bytes:
    """What is said of one file; without a name it is the only one that was looked into."""
    prefix = name.encode() + b":" if name else b""
    match wanted.mode:
        case GrepOutput.FILES:
            return (name or wanted.root).encode() + b"\n"
        case GrepOutput.COUNT:
            return b"%b%d\n" % (prefix, len(found))
        case GrepOutput.CONTENT:
            return b"".join(_lines(prefix, content, found, numbered=wanted.numbers))


def _lines(prefix: bytes, content: bytes, found: Sequence[int], *, numbered: bool) -> list[bytes]:
    said = []
    at, number = 0, 1
    for wanted in found:
        while number < wanted:
            at = content.index(b"\n", at) + 1
            number += 1
        end = content.find(b"\n", at)
        line = content[at:] if end < 0 else content[at:end]
        said.append(b"%b%d:%b\n" % (prefix, number, line) if numbered else prefix + line + b"\n")
    return said


@lru_cache(maxsize=64)
def compiled(pattern: str, *, ignoring_case: bool = False) -> LinearRegex:
    """What finds the lines, each from where the pattern fits on to its end. Raises Malformed."""
    spelled = translate_pattern(pattern, ignoring_case=ignoring_case).re2
    try:
        return linear(f"(?:{spelled})[^\\n]*")
    except RegexTooComplex:
        raise ValidationError("Invalid pattern: it is too large") from None


def found_lines(finder: LinearRegex, content: bytes, most: int) -> list[int]:
    """The numbers of the lines that fit, from 1 on, up to so many of them."""
    numbers: list[int] = []
    number, counted, following = 1, 0, 0
    # After the last line feed there is no line.
    end = len(content) - (not content or content.endswith(b"\n"))
    for found in finder.finditer(content):
        start = found.start()
        if start > end:
            break
        if start < following:  # in a line that was found already, after bytes that are no text
            continue
        number += content.count(b"\n", counted, start)
        counted = start
        numbers.append(number)
        following = content.find(b"\n", start) + 1
        if not following or len(numbers) == most:
            break
    return numbers
