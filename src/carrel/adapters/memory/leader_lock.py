"""Whose turn it is, in a set that all who take turns share."""

from __future__ import annotations


class MemoryLeaderLock:
    def __init__(self, name: str, taken: dict[str, MemoryLeaderLock]) -> None:
        self._name, self._taken = name, taken

    async def try_acquire(self) -> bool:
        return self._taken.setdefault(self._name, self) is self

    async def release(self) -> None:
        if self._taken.get(self._name) is self:
            del self._taken[self._name]
