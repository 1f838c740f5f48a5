"""Taking turns: those of one process who change the same thing do so one after the other.

Nothing depends on it for being right, since what a commit has seen is checked in the store; but of
many who decide again whenever another was quicker, some would never be the quickest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

_TURNS: Final[WeakValueDictionary[tuple[Hashable, ...], asyncio.Lock]] = WeakValueDictionary()
"""Of everything that somebody changes at this moment or waits for."""


@asynccontextmanager
async def local_lock(*what: Hashable) -> AsyncIterator[None]:
    """Wait until nobody else of this process is at it."""
    lock = _TURNS.setdefault((asyncio.get_running_loop(), *what), asyncio.Lock())
    async with lock:
        yield
