"""Cache of values derived from records, valid for one records revision."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

MAX_VALUES = 10_000


class RevisionCache:
    """Dictionary that is cleared when a newer revision is stored.

    Bounded by MAX_VALUES.
    """

    def __init__(self) -> None:
        self._revision = -1
        self._values: dict[Hashable, Any] = {}
        self.hits = 0
        self.misses = 0

    def get(self, revision: int, key: Hashable) -> Any:
        value = self._values.get(key) if revision == self._revision else None
        if value is None:
            self.misses += 1
        else:
            self.hits += 1
        return value

    def peek(self, key: Hashable) -> Any:
        """Return the last stored value, possibly outdated, or None."""
        return self._values.get(key)

    def put(self, revision: int, key: Hashable, value: Any) -> None:
        """Store a value derived from records at `revision` or later."""
        if revision < self._revision:
            return
        if revision > self._revision or len(self._values) >= MAX_VALUES:
            self._values.clear()
            self._revision = revision
        self._values[key] = value
