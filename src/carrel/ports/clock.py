"""Clock and source of random ids."""

from __future__ import annotations

from typing import Protocol

from carrel.core.identifiers import TimestampMs


class Clock(Protocol):
    """The only source of time and randomness."""

    def now(self) -> TimestampMs: ...

    def new_id(self, prefix: str) -> str:
        """Return a new id: prefix, `_` and 24 hex digits that sort by creation time."""

    def new_token(self, prefix: str) -> str:
        """Return a new secret of 256 bits."""
