"""The machine's clock and its source of chance."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Final

from carrel.core.identifiers import TimestampMs

_CHANCE: Final = 48
"""Bits of an id that are chance; those above them are the moment."""


class SystemClock:
    def __init__(self) -> None:
        self._latest = 0
        self._lock = threading.Lock()

    def now(self) -> TimestampMs:
        return time.time_ns() // 1_000_000

    def new_id(self, prefix: str) -> str:
        """Greater than every id this clock gave before, though the machine's time may go back."""
        wanted = (self.now() << _CHANCE) | secrets.randbits(_CHANCE)
        with self._lock:
            if wanted <= self._latest:
                wanted = self._latest + 1 + secrets.randbits(_CHANCE // 2)
            self._latest = wanted
        return f"{prefix}_{wanted:024x}"

    def new_token(self, prefix: str) -> str:
        return f"{prefix}_{secrets.token_urlsafe(32)}"
