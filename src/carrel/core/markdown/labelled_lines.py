"""Lines such as `- **Name:** Marco`, in all the ways people write them: a label, then its value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from carrel.core.markdown.fences import BULLET, outside_fences


class ValueSpan(NamedTuple):
    """Where a value stands: between what introduces it and what comes after it in its line."""

    start: int
    end: int


def find(file: str, label: str) -> ValueSpan | None:
    """The value of the first line outside code fences that has this label."""
    return next(every(file, label), None)


def every(file: str, label: str) -> Iterator[ValueSpan]:
    """The values of all such lines."""
    introduces = _introduces(label)
    for line in outside_fences(file):
        if introduced := introduces.match(line.text):
            start = line.end - len(line.text) + introduced.end()
            yield value_between(file, start, line.end)


def replaced(file: str, found: ValueSpan, shown: str) -> str:
    """The text with this in place of the value, and all else as it was."""
    before, after = file[: found.start], file[found.end :]
    before += "" if before.endswith((" ", "\t")) else " "
    after = f" {after}" if found.start == found.end and after.startswith("<!--") else after
    return f"{before}{shown}{after}"


@cache
def _introduces(label: str) -> re.Pattern[str]:
    return re.compile(
        rf" {{0,3}}(?:{BULLET}(?:\t| {{1,4}}))?"
        rf"(?P<mark>\*\*|__|\*|_|){label}(?:(?P=mark)[ \t]*+:|[ \t]*+:(?P=mark))",
        re.IGNORECASE,
    )


def value_between(file: str, start: int, end: int) -> ValueSpan:
    """The value in the rest of its line: without blanks around it and comments at its end.

    Some editors show U+2028 and U+2029 as line ends, so that what comes after them is not of it.
    """
    rest = re.split("[\u2028\u2029]", file[start:end], maxsplit=1)[0]
    value = _without_comments(rest).rstrip(" \t")
    blanks = (
        len(rest) - len(rest.lstrip(" \t")) if value else min(len(rest), 1) * rest[:1].isspace()
    )
    return ValueSpan(start + blanks, start + max(len(value), blanks))


def _without_comments(rest: str) -> str:
    """From the end backwards, so that a long line of comments is read once."""
    while (closed := rest.rstrip(" \t")).endswith("-->"):
        former = closed.rfind("-->", 0, len(closed) - 3)
        opened = closed.find("<!--", former + 3 if former >= 0 else 0, len(closed) - 3)
        if opened < 0:
            break
        rest = closed[:opened]
    return rest
