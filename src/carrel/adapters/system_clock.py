"""Clock port over the system time and the operating system's random source."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Final

from carrel.core.identifiers import TimestampMs

_RANDOM_BITS: Final = 48
"""Random low bits of an id; the bits above are the time in milliseconds."""


class SystemClock:
    def __init__(self) -> None:
        self._latest = 0
        self._lock = threading.Lock()

    def now(self) -> TimestampMs:
        return time.time_ns() // 1_000_000

    def new_id(self, prefix: str) -> str:
        """Return an id greater than all before it, even if the system time goes back."""
        value = (self.now() << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
        with self._lock:
            if value <= self._latest:
                value = self._latest + 1 + secrets.randbits(_RANDOM_BITS // 2)
            self._latest = value
        return f"{prefix}_{value:024x}"

    def new_token(self, prefix: str) -> str:
        return f"{prefix}_{secrets.token_urlsafe(32)}"
