"""Leader lock over a lock file beside the database; released when the holder dies."""

from __future__ import annotations

from pathlib import Path as File

from carrel.adapters.sqlite.write_lock import WriteLock


class FileLeaderLock:
    def __init__(self, database: File, name: str) -> None:
        self._file = database.with_name(f"{database.name}.{name}")
        self._lock: WriteLock | None = None

    async def try_acquire(self) -> bool:
        if self._lock is not None:
            return True
        lock = WriteLock(self._file)
        if lock.acquire_nowait():
            self._lock = lock
            return True
        lock.close()
        return False

    async def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
