"""Regular expressions that take time in proportion to the text, whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import re2  # type: ignore[import-untyped]


class RegexMatch(Protocol):
    def start(self) -> int: ...


class LinearRegex(Protocol):
    def finditer(self, text: bytes) -> Iterator[RegexMatch]:
        """Every place that fits, from left to right, none within another."""

    def fullmatch(self, text: bytes) -> RegexMatch | None:
        """Whether all of it fits."""


class RegexTooComplex(Exception):
    """It is no expression, or it would take too much to look for it."""


def linear(expression: str) -> LinearRegex:
    """Raises TooMuch."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        finder: LinearRegex = re2.compile(expression, options)
    except re2.error:
        raise RegexTooComplex from None
    return finder


def literally(text: str) -> str:
    """What finds this text and nothing else."""
    return str(re2.escape(text))
