"""What was worked out from records, kept for as long as no record changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

MOST = 10_000


class RevisionCache:
    """A dictionary that is emptied when it is asked for another revision than it holds."""

    def __init__(self) -> None:
        self._revision = -1
        self._values: dict[Hashable, Any] = {}
        self.hits = 0
        self.misses = 0

    def get(self, revision: int, key: Hashable) -> Any:
        found = self._values.get(key) if revision == self._revision else None
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def peek(self, key: Hashable) -> Any:
        """What was kept last, whether it still holds or not; None if nothing was."""
        return self._values.get(key)

    def put(self, revision: int, key: Hashable, value: Any) -> None:
        """Keep a value that was worked out from records no older than this revision."""
        if revision < self._revision:
            return
        if revision > self._revision or len(self._values) >= MOST:
            self._values.clear()
            self._revision = revision
        self._values[key] = value
