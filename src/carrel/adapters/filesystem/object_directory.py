"""Keyed object store as files of a directory, for programs that read files.

Every directory is opened relative to its parent without following symlinks. So nothing outside the
root is read, written or removed, whatever other processes create there.
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

from carrel.core.catalog.object_keys import parse_segments
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, digest

_TEMPORARY_DIRECTORY: Final = ".carrel-unfinished"
"""Directory at the root for files before their rename. Not a valid key."""
_ABANDONED_AFTER_SECONDS: Final = 24 * 3600
"""Age after which a temporary file is taken for the remains of a crash."""
_BATCH: Final = 1000
_MAX_ATTEMPTS: Final = 20
_MAX_CACHED_DIGESTS: Final = 500_000
_OPEN_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NONBLOCKING_FLAGS: Final = os.O_NONBLOCK | os.O_CLOEXEC
_NOT_A_DIRECTORY_ERRNOS: Final = (errno.ENOTDIR, errno.ELOOP)

_FileIdentity = tuple[int, int, int, int]


class _UnsupportedKey(Exception):
    """The key cannot be stored as a file; the message is the reason."""


class DirectoryObjectStore:
    forbids_nested_keys = True

    def __init__(self, root: File) -> None:
        self._root = root
        self._digests: dict[str, tuple[_FileIdentity, Digest]] = {}
        """Digest by key, valid while the file's identity is unchanged."""
        self._cleaned_up = False

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        puts = [asyncio.to_thread(self._put, key, content) for key, content in contents.items()]
        results = await asyncio.gather(*puts, return_exceptions=True)
        with suppress(OSError):  # not empty while another put is writing
            await asyncio.to_thread(os.rmdir, self._root / _TEMPORARY_DIRECTORY)
        refused: dict[str, str] = {}
        for key, reason in zip(contents, results, strict=True):
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
        scan = self._scan(prefix)
        while batch := await asyncio.to_thread(list, islice(scan, _BATCH)):
            for item in batch:
                yield item

    def _put(self, key: str, content: bytes) -> str | None:
        """Write the file and return None, or the reason why the key is not supported.

        Retries if a directory on the path is removed concurrently.
        """
        for _ in range(_MAX_ATTEMPTS):
            try:
                self._write(_split_key(key), content)
            except _UnsupportedKey as problem:
                return str(problem)
            except FileNotFoundError:
                continue
            else:
                return None
        raise FileNotFoundError(errno.ENOENT, "the directory keeps being removed", key)

    def _write(self, parts: Sequence[str], content: bytes) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        with self._open_directory((_TEMPORARY_DIRECTORY,), create=True) as temporary:
            self._remove_abandoned(temporary)
            name = secrets.token_hex(16)
            try:
                _write_file(name, temporary, content)
                with self._open_directory(parts[:-1], create=True) as directory:
                    _rename_over(name, temporary, parts[-1], directory)
                    os.fsync(directory)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=temporary)
                raise

    def _remove_abandoned(self, temporary: int) -> None:
        if self._cleaned_up:
            return
        self._cleaned_up = True
        for name in os.listdir(temporary):
            with suppress(OSError):
                if (
                    os.lstat(name, dir_fd=temporary).st_mtime
                    < time.time() - _ABANDONED_AFTER_SECONDS
                ):
                    os.unlink(name, dir_fd=temporary)

    def _get(self, key: str) -> bytes | None:
        try:
            parts = _split_key(key)
            with self._open_directory(parts[:-1]) as directory:
                return _read_file(parts[-1], directory)
        except (_UnsupportedKey, FileNotFoundError):
            return None

    def _delete(self, keys: Collection[str]) -> None:
        for key in keys:
            self._digests.pop(key, None)
            with suppress(_UnsupportedKey, FileNotFoundError, IsADirectoryError, PermissionError):
                parts = _split_key(key)
                with self._open_directory(parts[:-1]) as directory:
                    os.unlink(parts[-1], dir_fd=directory)
                self._remove_empty_directories(parts[:-1])

    def _remove_empty_directories(self, parts: Sequence[str]) -> None:
        """Remove directories that became empty, innermost first."""
        for depth in range(len(parts), 0, -1):
            try:
                with self._open_directory(parts[: depth - 1]) as parent:
                    os.rmdir(parts[depth - 1], dir_fd=parent)
            except OSError:
                return

    @contextmanager
    def _open_directory(self, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
        """Open a directory below the root. Raises _UnsupportedKey, FileNotFoundError."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                child = _open_subdirectory(part, descriptor, create=create)
                os.close(descriptor)
                descriptor = child
            yield descriptor
        finally:
            os.close(descriptor)

    def _scan(self, prefix: str) -> Iterator[tuple[str, Digest | None]]:
        """Yield keys and digests. Opens each directory from the root, so few stay open."""
        try:
            pending = [tuple(_split_key(prefix.removesuffix("/"))) if prefix else ()]
        except _UnsupportedKey:
            return
        while pending:
            parts = pending.pop()
            with (
                suppress(_UnsupportedKey, FileNotFoundError),
                self._open_directory(parts) as directory,
            ):
                prefix_path = "".join(f"{part}/" for part in parts)
                for name, status in _list_directory(directory):
                    if not stat.S_ISDIR(status.st_mode):
                        with suppress(_UnsupportedKey, FileNotFoundError):
                            yield (
                                f"{prefix_path}{name}",
                                self._digest(prefix_path, name, directory, status),
                            )
                    elif parts or name != _TEMPORARY_DIRECTORY:
                        pending.append((*parts, name))

    def _digest(
        self, prefix: str, name: str, directory: int, status: os.stat_result
    ) -> Digest | None:
        if not stat.S_ISREG(status.st_mode):
            return None
        key = f"{prefix}{name}"
        identity = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        cached = self._digests.get(key)
        if cached is not None and cached[0] == identity:
            return cached[1]
        content_digest = digest(_read_file(name, directory))
        if len(self._digests) >= _MAX_CACHED_DIGESTS:
            self._digests.clear()
        self._digests[key] = (identity, content_digest)
        return content_digest


def _split_key(key: str) -> Sequence[str]:
    try:
        parts = parse_segments(key)
    except ValidationError as problem:
        raise _UnsupportedKey(str(problem)) from None
    if parts[0] == _TEMPORARY_DIRECTORY:
        raise _UnsupportedKey("the name is reserved for temporary files")
    return parts


def _open_subdirectory(part: str, parent: int, *, create: bool) -> int:
    if create:
        with _as_unsupported_key(part), suppress(FileExistsError):
            os.mkdir(part, dir_fd=parent)
            os.fsync(parent)
    with _as_unsupported_key(part):
        return os.open(part, _OPEN_DIRECTORY_FLAGS, dir_fd=parent)


@contextmanager
def _as_unsupported_key(part: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno in _NOT_A_DIRECTORY_ERRNOS:
            raise _UnsupportedKey(f"{part} is not a directory") from None
        if problem.errno == errno.ENAMETOOLONG:
            raise _UnsupportedKey("a name is too long for this file system") from None
        raise


def _write_file(name: str, directory: int, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o666, dir_fd=directory), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _rename_over(name: str, source_directory: int, leaf: str, target_directory: int) -> None:
    """Rename over a file, symlink or empty directory. Raises _UnsupportedKey."""
    with suppress(OSError):
        os.rmdir(leaf, dir_fd=target_directory)
    try:
        with _as_unsupported_key(leaf):
            os.rename(name, leaf, src_dir_fd=source_directory, dst_dir_fd=target_directory)
    except IsADirectoryError:
        raise _UnsupportedKey("a directory exists at this path") from None


def _read_file(name: str, directory: int) -> bytes:
    """Read a regular file. Raises _UnsupportedKey for other types.

    Never blocks on a pipe.
    """
    with _as_unsupported_key(name):
        descriptor = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | _NONBLOCKING_FLAGS, dir_fd=directory
        )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _UnsupportedKey("not a regular file")
    with open(descriptor, "rb") as file:
        return file.read()


def _list_directory(directory: int) -> list[tuple[str, os.stat_result]]:
    entries = []
    for name in os.listdir(directory):
        with suppress(FileNotFoundError):
            entries.append((name, os.lstat(name, dir_fd=directory)))
    return entries
