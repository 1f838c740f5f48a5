"""A number for each of very many ids, in little more than eight bytes each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_BITS: Final = 8
_SIZE: Final = 1 << _BITS


class IdCounts:
    """Numbers of 64 bits by id, 0 where none was noted; ids that lie together share a page."""

    def __init__(self) -> None:
        self._pages: dict[int, memoryview] = {}

    def __getitem__(self, id: int) -> int:
        page = self._pages.get(id >> _BITS)
        return 0 if page is None else page[id & _SIZE - 1]

    def __setitem__(self, id: int, number: int) -> None:
        page = self._pages.get(id >> _BITS)
        if page is None:
            page = self._pages[id >> _BITS] = memoryview(bytearray(8 * _SIZE)).cast("Q")
        page[id & _SIZE - 1] = number

    def each(self) -> Iterator[tuple[int, int]]:
        """Every id for which a number was noted, in order."""
        for place in sorted(self._pages):
            for offset, number in enumerate(self._pages[place]):
                if number:
                    yield (place << _BITS) + offset, number
