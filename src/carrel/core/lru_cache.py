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

    __slots__ = (
        "_max_entry_weight",
        "_max_weight",
        "_values",
        "_weights",
        "hits",
        "misses",
        "weight",
    )

    def __init__(self, max_weight: int, max_entry_weight: int | None = None) -> None:
        self._max_weight = max_weight
        self._max_entry_weight = max_weight if max_entry_weight is None else max_entry_weight
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weights: dict[K, int] = {}
        self.weight = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        """Keys, least recently used first."""
        return iter(self._values)

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is None:
            self.misses += 1
            return None
        self.hits += 1
        self._values.move_to_end(key)
        return value

    def peek(self, key: K) -> V | None:
        """Return a value without counting or using it."""
        return self._values.get(key)

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Store or replace a value; above the maximum weight of an entry, only remove it."""
        self.remove(key)
        if weight > self._max_entry_weight:
            return
        self._values[key] = value
        self._weights[key] = weight
        self.weight += weight
        while self.weight > self._max_weight:
            oldest, _ = self._values.popitem(last=False)
            self.weight -= self._weights.pop(oldest)

    def remove(self, key: K) -> None:
        if self._values.pop(key, None) is not None:
            self.weight -= self._weights.pop(key)

    def clear(self) -> None:
        self._values.clear()
        self._weights.clear()
        self.weight = 0
