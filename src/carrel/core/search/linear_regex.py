"""Regular expressions that take time in proportion to the text, whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import re2  # type: ignore[import-untyped]


class Fit(Protocol):
    def start(self) -> int: ...


class Finder(Protocol):
    def finditer(self, text: bytes) -> Iterator[Fit]:
        """Every place that fits, from left to right, none within another."""

    def fullmatch(self, text: bytes) -> Fit | None:
        """Whether all of it fits."""


class TooMuch(Exception):
    """It is no expression, or it would take too much to look for it."""


def linear(expression: str) -> Finder:
    """Raises TooMuch."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        finder: Finder = re2.compile(expression, options)
    except re2.error:
        raise TooMuch from None
    return finder


def literally(text: str) -> str:
    """What finds this text and nothing else."""
    return str(re2.escape(text))
