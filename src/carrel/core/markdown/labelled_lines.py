"""Values of labelled lines such as `- **Name:** Marco`, with their positions."""

from __future__ import annotations

import re
from typing import NamedTuple


class ValueSpan(NamedTuple):
    """Position of a value in the file."""

    start: int
    end: int


def replace_value(file: str, span: ValueSpan, value: str) -> str:
    """Replace the value at `span` and keep everything else."""
    before, after = file[: span.start], file[span.end :]
    before += "" if before.endswith((" ", "\t")) else " "
    after = f" {after}" if span.start == span.end and after.startswith("<!--") else after
    return f"{before}{value}{after}"


def value_between(file: str, start: int, end: int) -> ValueSpan:
    """Value in the rest of a line, without surrounding blanks and trailing comments.

    U+2028 and U+2029 end the value, since some editors show them as line ends.
    """
    remainder = re.split("[\u2028\u2029]", file[start:end], maxsplit=1)[0]
    value = _strip_trailing_comments(remainder).rstrip(" \t")
    blanks = (
        len(remainder) - len(remainder.lstrip(" \t"))
        if value
        else min(len(remainder), 1) * remainder[:1].isspace()
    )
    return ValueSpan(start + blanks, start + max(len(value), blanks))


def _strip_trailing_comments(text: str) -> str:
    """Scans backwards, so a long line of comments is read once."""
    while (stripped := text.rstrip(" \t")).endswith("-->"):
        previous = stripped.rfind("-->", 0, len(stripped) - 3)
        comment_start = stripped.find(
            "<!--", previous + 3 if previous >= 0 else 0, len(stripped) - 3
        )
        if comment_start < 0:
            break
        text = stripped[:comment_start]
    return text
