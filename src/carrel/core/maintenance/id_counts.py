"""Compact map from integer ids to 64-bit numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_PAGE_BITS: Final = 8
_PAGE_SIZE: Final = 1 << _PAGE_BITS


class IdCounts:
    """64-bit numbers by id, 0 by default.

    Neighbouring ids share a page, about 8 bytes per id.
    """

    def __init__(self) -> None:
        self._pages: dict[int, memoryview] = {}

    def __getitem__(self, id: int) -> int:
        page = self._pages.get(id >> _PAGE_BITS)
        return 0 if page is None else page[id & _PAGE_SIZE - 1]

    def __setitem__(self, id: int, number: int) -> None:
        page = self._pages.get(id >> _PAGE_BITS)
        if page is None:
            page = self._pages[id >> _PAGE_BITS] = memoryview(bytearray(8 * _PAGE_SIZE)).cast("Q")
        page[id & _PAGE_SIZE - 1] = number

    def items(self) -> Iterator[tuple[int, int]]:
        """Ids with a nonzero number, in order."""
        for page_number in sorted(self._pages):
            for offset, number in enumerate(self._pages[page_number]):
                if number:
                    yield (page_number << _PAGE_BITS) + offset, number
