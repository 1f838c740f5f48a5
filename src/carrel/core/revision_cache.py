"""Cache of values derived from records, valid for one records revision."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from carrel.core.lru_cache import LruCache

MAX_VALUES: Final = 10_000


class RevisionCache:
    """LRU cache that is cleared when a newer revision is stored."""

    def __init__(self) -> None:
        self._revision = -1
        self._values: LruCache[Hashable, Any] = LruCache(MAX_VALUES)
        self._outdated = 0
        """Misses for want of the revision."""

    @property
    def hits(self) -> int:
        return self._values.hits

    @property
    def misses(self) -> int:
        return self._values.misses + self._outdated

    def get(self, revision: int, key: Hashable) -> Any:
        if revision != self._revision:
            self._outdated += 1
            return None
        return self._values.get(key)

    def peek(self, key: Hashable) -> Any:
        """Return the last stored value, possibly outdated, or None."""
        return self._values.peek(key)

    def put(self, revision: int, key: Hashable, value: Any) -> None:
        """Store a value derived from records at `revision` or later."""
        if revision < self._revision:
            return
        if revision > self._revision:
            self._values.clear()
            self._revision = revision
        self._values.put(key, value)
