"""Leader lock between the processes of a deployment."""

from __future__ import annotations

from typing import Protocol


class LeaderLock(Protocol):
    """Leader lock: at most one process of a deployment holds it.

    Released when the holder dies.
    """

    async def try_acquire(self) -> bool:
        """Return whether this process holds the lock now. Raises the store's errors."""

    async def release(self) -> None:
        """Release the lock; no error if not held."""
