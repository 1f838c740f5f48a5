"""Git repositories in a directory: bare, one a scope, written whole and served read-only."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path as File
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from carrel.core.identifiers import Scope, identifier

if TYPE_CHECKING:
    from carrel.adapters.git.repository import GitRepository

Result = TypeVar("Result")

_CHUNK: Final = 64 * 1024
_THREADS: Final = 4


class GitDirectory:
    """Many at once may read; whoever writes one holds the lock of a file beside it.

    What does the work is imported when it is first asked for: it takes a third of a second.
    """

    def __init__(self, root: File) -> None:
        self._root = root
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="git")

    @asynccontextmanager
    async def held(self, scope: Scope) -> AsyncIterator[GitRepository]:
        from carrel.adapters.git.repository import GitRepository  # noqa: PLC0415 - see above

        place = self.place(scope)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = await _locked(place.with_suffix(".lock"))
        repository = GitRepository(place, self._do)
        try:
            yield repository
        finally:
            try:
                await self._do(repository.close)
            finally:
                os.close(lock)

    async def advertised(self, scope: Scope) -> bytes:
        from carrel.adapters.git.upload_pack import advertise_refs  # noqa: PLC0415 - see above

        return await self._do(advertise_refs, self.place(scope))

    async def packed(self, scope: Scope, request: bytes) -> AsyncIterator[bytes]:
        from carrel.adapters.git.upload_pack import upload_pack  # noqa: PLC0415 - see above

        return _poured(await self._do(upload_pack, self.place(scope), request))

    def place(self, scope: Scope) -> File:
        return self._root / identifier(scope.tenant) / f"{identifier(scope.name)}.git"

    async def _do(self, work: Callable[..., Result], *about: Any) -> Result:
        """To its end, also if whoever asked has left: a thread goes on, and needs the lock."""
        doing = asyncio.get_running_loop().run_in_executor(self._pool, work, *about)
        left: asyncio.CancelledError | None = None
        while not doing.done():
            try:
                await asyncio.shield(doing)
            except asyncio.CancelledError as gone:
                left = gone
        if left is not None:
            raise left
        return doing.result()


async def _poured(answer: IO[bytes]) -> AsyncIterator[bytes]:
    with answer:
        while chunk := answer.read(_CHUNK):
            yield chunk


async def _locked(file: File) -> int:
    """The lock of a file, asked for again and again: waiting in a thread could not be given up."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    pause = 0.002
    try:
        while not _taken(lock):
            await asyncio.sleep(pause)
            pause = min(0.1, pause * 2)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
