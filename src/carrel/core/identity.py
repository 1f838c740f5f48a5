"""The line of IDENTITY.md that says what an agent is called, and how a rename changes it alone.

The file belongs to whoever wrote it: all but that name is kept to the byte. A line in a code fence
is an example of a name and none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from carrel.core.names import Path
from carrel.core.placeholders import sanitised

IDENTITY: Final = Path("IDENTITY.md")
_MARK: Final = "\ufeff"
_LINE: Final = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n|\Z)")
_END: Final = re.compile(r"\r\n|\r|\n")
_QUOTE: Final = re.compile(r"(?>(?: {0,3}> ?){0,99})")
_BULLET: Final = r"(?:[-*+]|[0-9]{1,9}[.)])"

_NAME: Final = re.compile(
    rf" {{0,3}}(?:{_BULLET}(?:\t| {{1,4}}))?"
    r"(?P<mark>\*\*|__|\*|_|)name(?:(?P=mark)[ \t]*+:|[ \t]*+:(?P=mark))",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(
    rf"(?P<item> {{0,3}}{_BULLET} {{1,4}})?(?P<indent> {{0,3}})(?P<fence>`{{3,}}+(?!.*`)|~{{3,}}+)"
)
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=++|-++)[ \t]*+\Z")
_BEGINS_ANEW: Final = re.compile(rf" {{0,3}}(?:{_BULLET}[ \t]|#{{1,6}}[ \t]|>|`{{3}}|~{{3}}|\Z)")


class _Line(NamedTuple):
    start: int
    text: str
    """Without its end, and without the marks of the quote that it stands in."""
    end: int
    """Where the text ends, and its line end begins."""
    next: int
    depth: int
    """Of how many quotes it is part."""


class _Name(NamedTuple):
    """Where a name stands: between what introduces it and what comes after it in its line."""

    start: int
    end: int


def renamed(text: bytes, name: str) -> bytes:
    """The file with this name in its Name line, which is added if there is none.

    What is not UTF-8 is left as it is.
    """
    file = _decoded(text)
    if file is None:
        return text
    found, shown = _find(file), sanitised(name)
    if found is None:
        return _with_a_name_line(file, shown).encode()
    before, after = file[: found.start], file[found.end :]
    before += "" if before.endswith((" ", "\t")) else " "
    after = f" {after}" if found.start == found.end and after.startswith("<!--") else after
    return f"{before}{shown}{after}".encode()


def name_in(text: bytes) -> str | None:
    """What the Name line says, as it is written there; None where there is no such line."""
    file = _decoded(text)
    found = None if file is None else _find(file)
    return file[found.start : found.end] if file is not None and found else None


def follows_its_agent(text: bytes) -> bool:
    """Whether the Name line shows whatever the agent is called, so that a rename needs no edit."""
    return "{{AGENT_NAME}}" in (name_in(text) or "")


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _find(file: str) -> _Name | None:
    for line in _outside_fences(file):
        if introduced := _NAME.match(line.text):
            start = line.end - len(line.text) + introduced.end()
            return _name_between(file, start, line.end)
    return None


def _name_between(file: str, start: int, end: int) -> _Name:
    """The name in the rest of its line: without blanks around it and comments at its end.

    Some editors show U+2028 and U+2029 as line ends, so that what comes after them is not the name.
    """
    rest = re.split("[\u2028\u2029]", file[start:end], maxsplit=1)[0]
    name = _without_comments(rest).rstrip(" \t")
    blanks = len(rest) - len(rest.lstrip(" \t")) if name else min(len(rest), 1) * rest[:1].isspace()
    return _Name(start + blanks, start + max(len(name), blanks))


def _without_comments(rest: str) -> str:
    """From the end backwards, so that a long line of comments is read once."""
    while (closed := rest.rstrip(" \t")).endswith("-->"):
        former = closed.rfind("-->", 0, len(closed) - 3)
        opened = closed.find("<!--", former + 3 if former >= 0 else 0, len(closed) - 3)
        if opened < 0:
            break
        rest = closed[:opened]
    return rest


def _lines(file: str) -> Iterator[_Line]:
    at = len(_MARK) if file.startswith(_MARK) else 0
    while at < len(file):
        found = _LINE.match(file, at)
        assert found
        text = found[0].rstrip("\r\n")
        quote = _QUOTE.match(text)
        marks = quote[0] if quote else ""
        yield _Line(at, text[len(marks) :], at + len(text), found.end(), marks.count(">"))
        at = found.end()


class _Fence(NamedTuple):
    closing: re.Pattern[str]
    depth: int
    indent: int
    """How far its lines are indented for the list item that holds it."""

    def holds(self, line: _Line) -> bool:
        """Whether a line is still in the quote and the list item in which this was opened."""
        blanks = len(line.text) - len(line.text.lstrip(" "))
        return line.depth >= self.depth and (blanks >= self.indent or not line.text.strip())


def _opened(line: _Line) -> _Fence | None:
    found = _FENCE.match(line.text)
    if found is None:
        return None
    mark = found["fence"]
    closing = re.compile(rf" *+{mark[0]}{{{len(mark)},}}+[ \t]*+\Z")
    return _Fence(closing, line.depth, len(found["item"] or ""))


def _outside_fences(file: str) -> Iterator[_Line]:
    fence: _Fence | None = None
    for line in _lines(file):
        if fence and fence.holds(line):
            fence = None if fence.closing.match(line.text) else fence
            continue
        fence = _opened(line)
        if fence is None:
            yield line


def _with_a_name_line(file: str, shown: str) -> str:
    """The file with a Name line after its first heading, or else at its top."""
    at = _after_the_heading(file)
    before, after = file[:at], file[at:]
    found = _END.search(file)
    end = found[0] if found else "\n"
    line = f"- **Name:** {shown}{end}"
    if at > len(_MARK) and not before.endswith(("\r", "\n")):
        line = end + line.removesuffix(end)
    following = _END.split(after, maxsplit=1)[0]
    gap = "" if _BEGINS_ANEW.match(following) else end
    return f"{before}{line}{gap}{after}"


def _after_the_heading(file: str) -> int:
    former: _Line | None = None
    for line in _outside_fences(file):
        underlined = former and former.text.strip() and former.next == line.start
        if not line.depth and (
            _HEADING.match(line.text) or (underlined and _UNDERLINE.match(line.text))
        ):
            return line.next
        former = line
    return len(_MARK) if file.startswith(_MARK) else 0
