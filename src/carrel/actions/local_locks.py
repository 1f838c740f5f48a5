"""Locks that serialize changes to one resource within this process.

Correctness does not depend on them: the store checks the expectations of every commit. They
prevent starvation among many writers that retry on conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

_LOCKS: Final[WeakValueDictionary[tuple[Hashable, ...], asyncio.Lock]] = WeakValueDictionary()
"""Locks that are held or waited for at the moment."""


@asynccontextmanager
async def local_lock(*key: Hashable) -> AsyncIterator[None]:
    """Hold the lock of `key` in this process and event loop."""
    lock = _LOCKS.setdefault((asyncio.get_running_loop(), *key), asyncio.Lock())
    async with lock:
        yield
