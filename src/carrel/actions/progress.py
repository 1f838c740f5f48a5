"""Progress reports of long operations."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[str, int, int], None]
"""Receives the label, the completed count and the total."""


def no_progress(label: str, completed: int, total: int) -> None:
    """Progress callback that does nothing."""


class ProgressCounter:
    """Counts completed units of one operation and reports them to a callback."""

    def __init__(self, on_progress: ProgressCallback, label: str) -> None:
        self._on_progress, self._label = on_progress, label
        self._completed = self._total = 0

    def set_total(self, total: int) -> None:
        self._total = total
        self.add(0)

    def add(self, count: int) -> None:
        self._completed += count
        if self._total:
            self._on_progress(self._label, self._completed, self._total)
