"""Git repositories in a directory: bare, one per scope, served read-only."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path as File
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from carrel.core.identifiers import Scope, parse_identifier

if TYPE_CHECKING:
    from carrel.adapters.git.repository import GitRepository

Result = TypeVar("Result")

_CHUNK_BYTES: Final = 64 * 1024
_THREADS: Final = 4


class GitDirectory:
    """Repositories port. Many readers at a time; a writer holds a lock file beside it.

    Imports dulwich on first use, since the import takes about 300 ms.
    """

    def __init__(self, root: File) -> None:
        self._root = root
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="git")

    @asynccontextmanager
    async def lock(self, scope: Scope) -> AsyncIterator[GitRepository]:
        from carrel.adapters.git.repository import GitRepository  # noqa: PLC0415 - see above

        place = self.repository_path(scope)
        # The mode of `parents` is that of the umask.
        for directory in (self._root, place.parent):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = await _acquire_file_lock(place.with_suffix(".lock"))
        repository = GitRepository(place, self._run_in_thread)
        try:
            yield repository
        finally:
            try:
                await self._run_in_thread(repository.close)
            finally:
                os.close(lock)

    async def delete(self, scope: Scope) -> None:
        place = self.repository_path(scope)
        if not place.parent.is_dir():
            return
        async with self.lock(scope):
            for suffix in (".git", ".new", ".old"):
                await self._run_in_thread(shutil.rmtree, place.with_suffix(suffix), True)

    async def advertise_refs(self, scope: Scope) -> bytes:
        from carrel.adapters.git.upload_pack import advertise_refs  # noqa: PLC0415 - see above

        return await self._run_in_thread(advertise_refs, self.repository_path(scope))

    async def upload_pack(self, scope: Scope, request: bytes) -> AsyncIterator[bytes]:
        from carrel.adapters.git.upload_pack import upload_pack  # noqa: PLC0415 - see above

        return _stream_file(
            await self._run_in_thread(upload_pack, self.repository_path(scope), request)
        )

    def repository_path(self, scope: Scope) -> File:
        return self._root / parse_identifier(scope.tenant) / f"{parse_identifier(scope.name)}.git"

    async def _run_in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run in the thread pool to the end, even if the caller is cancelled.

        The thread cannot be interrupted, and the lock must not be released before it ends.
        """
        future = asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        return future.result()


async def _stream_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


async def _acquire_file_lock(file: File) -> int:
    """Lock a file by polling: a blocking wait in a thread could not be cancelled."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    pause = 0.002
    try:
        while not _try_lock(lock):
            await asyncio.sleep(pause)
            pause = min(0.1, pause * 2)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
