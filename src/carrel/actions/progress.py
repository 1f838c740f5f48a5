"""Telling how far a long work has come."""

from __future__ import annotations

from collections.abc import Callable

Watch = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and of how much."""


def no_progress(what: str, done: int, total: int) -> None:
    """A Watch that tells nobody."""


class ProgressCounter:
    """Counts one thing that is being done, and tells a Watch."""

    def __init__(self, watch: Watch, what: str) -> None:
        self._watch, self._what = watch, what
        self._done = self._total = 0

    def expect(self, total: int) -> None:
        self._total = total
        self.add(0)

    def add(self, number: int) -> None:
        self._done += number
        if self._total:
            self._watch(self._what, self._done, self._total)
