"""Regular expressions that match in time proportional to the text (RE2)."""

from __future__ import annotations

from typing import Protocol

import re2  # type: ignore[import-untyped]


class RegexMatch(Protocol):
    def start(self) -> int: ...

    def end(self) -> int: ...


class LinearRegex(Protocol):
    def search(self, text: bytes, pos: int = 0) -> RegexMatch | None:
        """Return the leftmost match that starts at ``pos`` or later."""

    def fullmatch(self, text: bytes) -> RegexMatch | None:
        """Return a match of the entire text."""


class InvalidRegex(Exception):
    """RE2 refused the expression; the message is RE2's own."""


def compile_regex(expression: str, *, in_lines: bool = False) -> LinearRegex:
    """Compile an expression; raises InvalidRegex.

    With ``in_lines``, ``^`` and ``$`` match at every line and no match contains a line feed.
    """
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = in_lines
    try:
        regex: LinearRegex = re2.compile(f"(?m){expression}" if in_lines else expression, options)
    except re2.error as error:
        raise InvalidRegex(error.args[0].decode(errors="replace")) from None
    except UnicodeEncodeError:
        raise InvalidRegex("invalid UTF-8") from None
    return regex


def escape_regex(text: str) -> str:
    """Return an expression that matches this text and nothing else."""
    return str(re2.escape(text))
