"""Objects by key as files beneath a directory, for whoever reads files.

Every directory on the way to a file is opened from the one above it and never by way of a link, so
that nothing outside is read, written or removed, whatever others put there meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import stat
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path as File
from typing import Final

from carrel.core.catalog.object_keys import segments
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, digest

_ASIDE: Final = ".carrel-unfinished"
"""Where files are written before they get their names: at the top, and no key of anybody's."""
_ABANDONED: Final = 24 * 3600
"""Seconds after which an unfinished file can only be what a crash left behind."""
_BATCH: Final = 1000
_ATTEMPTS: Final = 20
_MOST_KNOWN: Final = 500_000
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_AT_ONCE: Final = os.O_NONBLOCK | os.O_CLOEXEC
_WAY_BARRED: Final = (errno.ENOTDIR, errno.ELOOP)

_Facts = tuple[int, int, int, int]


class _Unfit(Exception):
    """There can be no file for this key; the message says why."""


class DirectoryObjectStore:
    forbids_nested_keys = True

    def __init__(self, root: File) -> None:
        self._root = root
        self._known: dict[str, tuple[_Facts, Digest]] = {}
        """What was read of a file, for as long as it is the very same."""
        self._tidied = False

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        puts = [asyncio.to_thread(self._put, key, content) for key, content in contents.items()]
        done = await asyncio.gather(*puts, return_exceptions=True)
        with suppress(OSError):  # another may be writing aside
            await asyncio.to_thread(os.rmdir, self._root / _ASIDE)
        refused: dict[str, str] = {}
        for key, reason in zip(contents, done, strict=True):
            if isinstance(reason, BaseException):
                raise reason
            if reason is not None:
                refused[key] = reason
        return refused

    async def get(self, key: str) -> bytes | None:
        return await asyncio.to_thread(self._get, key)

    async def delete(self, keys: Collection[str]) -> None:
        await asyncio.to_thread(self._delete, keys)

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        found = self._scan(prefix)
        while batch := await asyncio.to_thread(list, islice(found, _BATCH)):
            for one in batch:
                yield one

    def _put(self, key: str, content: bytes) -> str | None:
        """Why it cannot be, or None. A directory on its way may go while it is on it: once more."""
        for _ in range(_ATTEMPTS):
            try:
                self._write(_parts(key), content)
            except _Unfit as problem:
                return str(problem)
            except FileNotFoundError:
                continue
            else:
                return None
        raise FileNotFoundError(errno.ENOENT, "its directory is removed again and again", key)

    def _write(self, parts: Sequence[str], content: bytes) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        with self._folder((_ASIDE,), make=True) as aside:
            self._tidy(aside)
            name = secrets.token_hex(16)
            try:
                _fill(name, aside, content)
                with self._folder(parts[:-1], make=True) as folder:
                    _rename(name, aside, parts[-1], folder)
                    os.fsync(folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=aside)
                raise

    def _tidy(self, aside: int) -> None:
        if self._tidied:
            return
        self._tidied = True
        for name in os.listdir(aside):
            with suppress(OSError):
                if os.lstat(name, dir_fd=aside).st_mtime < time.time() - _ABANDONED:
                    os.unlink(name, dir_fd=aside)

    def _get(self, key: str) -> bytes | None:
        try:
            parts = _parts(key)
            with self._folder(parts[:-1]) as folder:
                return _read(parts[-1], folder)
        except (_Unfit, FileNotFoundError):
            return None

    def _delete(self, keys: Collection[str]) -> None:
        for key in keys:
            self._known.pop(key, None)
            with suppress(_Unfit, FileNotFoundError, IsADirectoryError, PermissionError):
                parts = _parts(key)
                with self._folder(parts[:-1]) as folder:
                    os.unlink(parts[-1], dir_fd=folder)
                self._prune(parts[:-1])

    def _prune(self, parts: Sequence[str]) -> None:
        """Remove the directories that hold nothing any more, from the innermost."""
        for depth in range(len(parts), 0, -1):
            try:
                with self._folder(parts[: depth - 1]) as above:
                    os.rmdir(parts[depth - 1], dir_fd=above)
            except OSError:
                return

    @contextmanager
    def _folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """A directory by its way from the top. Raises _Unfit, FileNotFoundError."""
        opened = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                inner = _opened(part, opened, make=make)
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)

    def _scan(self, prefix: str) -> Iterator[tuple[str, Digest | None]]:
        """Directory by directory, each opened anew from the top: few are open at any time."""
        try:
            waiting = [tuple(_parts(prefix.removesuffix("/"))) if prefix else ()]
        except _Unfit:
            return
        while waiting:
            way = waiting.pop()
            with suppress(_Unfit, FileNotFoundError), self._folder(way) as folder:
                within = "".join(f"{part}/" for part in way)
                for name, facts in _listed(folder):
                    if not stat.S_ISDIR(facts.st_mode):
                        with suppress(_Unfit, FileNotFoundError):
                            yield f"{within}{name}", self._digest(within, name, folder, facts)
                    elif way or name != _ASIDE:
                        waiting.append((*way, name))

    def _digest(self, within: str, name: str, folder: int, facts: os.stat_result) -> Digest | None:
        if not stat.S_ISREG(facts.st_mode):
            return None
        key = f"{within}{name}"
        seen = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        known = self._known.get(key)
        if known is not None and known[0] == seen:
            return known[1]
        found = digest(_read(name, folder))
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = (seen, found)
        return found


def _parts(key: str) -> Sequence[str]:
    try:
        parts = segments(key)
    except ValidationError as problem:
        raise _Unfit(str(problem)) from None
    if parts[0] == _ASIDE:
        raise _Unfit("that is where unfinished files are")
    return parts


def _opened(part: str, above: int, *, make: bool) -> int:
    if make:
        with _fitting(part), suppress(FileExistsError):
            os.mkdir(part, dir_fd=above)
            os.fsync(above)
    with _fitting(part):
        return os.open(part, _FOLDER, dir_fd=above)


@contextmanager
def _fitting(part: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno in _WAY_BARRED:
            raise _Unfit(f"{part} on its way is no directory") from None
        if problem.errno == errno.ENAMETOOLONG:
            raise _Unfit("a name in it is too long for this file system") from None
        raise


def _fill(name: str, aside: int, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o666, dir_fd=aside), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _rename(name: str, aside: int, leaf: str, folder: int) -> None:
    """Over a file or a link that is there, and over a directory if that is empty."""
    with suppress(OSError):
        os.rmdir(leaf, dir_fd=folder)
    try:
        with _fitting(leaf):
            os.rename(name, leaf, src_dir_fd=aside, dst_dir_fd=folder)
    except IsADirectoryError:
        raise _Unfit("a directory stands there") from None


def _read(name: str, folder: int) -> bytes:
    """Raises _Unfit for what is no file; a pipe is not waited for."""
    with _fitting(name):
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | _AT_ONCE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise _Unfit("what stands there is no file")
    with open(opened, "rb") as file:
        return file.read()


def _listed(folder: int) -> list[tuple[str, os.stat_result]]:
    found = []
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            found.append((name, os.lstat(name, dir_fd=folder)))
    return found
