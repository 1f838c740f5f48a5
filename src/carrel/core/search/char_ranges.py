"""Sets of characters as ranges of their numbers, for patterns that two engines must agree on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

Ranges = tuple[tuple[int, int], ...]
"""In order, apart from one another, both ends included."""

_HIGHEST: Final = 0x10FFFF
_SURROGATES: Final = (0xD800, 0xDFFF)
NEWLINE: Final = ((10, 10),)


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def others(ranges: Ranges) -> Ranges:
    """All characters that are not among these. A surrogate is none."""
    found = []
    at = 0
    for first, last in joined((*ranges, _SURROGATES)):
        if at < first:
            found.append((at, first - 1))
        at = last + 1
    return (*found, (at, _HIGHEST)) if at <= _HIGHEST else tuple(found)


def spelled(ranges: Ranges) -> str:
    """As they stand between brackets."""
    return "".join(
        f"\\x{{{first:x}}}" if first == last else f"\\x{{{first:x}}}-\\x{{{last:x}}}"
        for first, last in ranges
    )


DIGIT: Final = joined([(0x30, 0x39)])
WORD: Final = joined([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
BLANK: Final = joined([(0x09, 0x09), (0x0B, 0x0D), (0x20, 0x20)])
"""A line feed is in none of these and in none of their opposites: it ends a line."""

NO_DIGIT: Final = others(joined((*DIGIT, *NEWLINE)))
NO_WORD: Final = others(joined((*WORD, *NEWLINE, (0x17F, 0x17F), (0x212A, 0x212A))))
"""Without the long s and the sign for kelvin, which are letters where case does not matter."""
NO_BLANK: Final = others(joined((*BLANK, *NEWLINE)))

POSIX: Final[Mapping[str, Ranges]] = {
    "alpha": joined([(0x41, 0x5A), (0x61, 0x7A)]),
    "digit": DIGIT,
    "alnum": joined([(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)]),
    "upper": joined([(0x41, 0x5A)]),
    "lower": joined([(0x61, 0x7A)]),
    "space": BLANK,
    "blank": joined([(0x09, 0x09), (0x20, 0x20)]),
    "punct": joined([(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)]),
    "xdigit": joined([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]),
    "word": WORD,
}
