"""Bounded cache that evicts the least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values bounded by their total weight, with counted hits and misses.

    An entry weighs 1 unless `put` says otherwise, so the bound is a number of entries or of bytes.
    None is not a value. Not safe for concurrent use by threads.
    """

    __slots__ = ("_entries", "_max_entry_weight", "_max_weight", "hits", "misses", "weight")

    def __init__(self, max_weight: int, max_entry_weight: int | None = None) -> None:
        self._max_weight = max_weight
        self._max_entry_weight = max_weight if max_entry_weight is None else max_entry_weight
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        """Keys, least recently used first."""
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return entry[0]

    def peek(self, key: K) -> V | None:
        """Return a value without counting or using it."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Store or replace a value; one above the weight of an entry is not stored."""
        self.remove(key)
        if weight > self._max_entry_weight:
            return
        self._entries[key] = (value, weight)
        self.weight += weight
        while self.weight > self._max_weight:
            self.weight -= self._entries.popitem(last=False)[1][1]

    def remove(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.weight -= entry[1]

    def clear(self) -> None:
        self._entries.clear()
        self.weight = 0
