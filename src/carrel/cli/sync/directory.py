"""A synced directory: locked, with atomic conditional writes and crash recovery.

Names are resolved from the directory's descriptor without following symlinks. A write creates a
temporary file and exchanges it with the target; if the target was not the expected content, they
are exchanged back. `recover` handles temporary files that a crash left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Final

from carrel.core.files.directory_sync import conflict_copy_names
from carrel_client.errors import DirectoryLocked, UnusableWorkspace
from carrel_client.local_directory.atomic_rename import swap_names

STATE_FILE: Final = ".carrel-sync.json"
MAX_FILE_BYTES: Final = 4 * 2**20
"""Larger files are not synced: they are held in memory."""

_NEW_PREFIX: Final = ".carrel-new-"
"""Prefix of incomplete temporary files. Deleted after a crash."""
_SWAP_PREFIX: Final = ".carrel-swap-"
"""Prefix of complete temporary files.

After a crash such a file may be the only copy of a content.
"""
_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINK_ERRORS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


class SyncedDirectory:
    """An open and exclusively locked directory.

    Raises DirectoryLocked if another process holds the lock, UnusableWorkspace if the path is not a
    directory.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(directory)
        try:
            os.makedirs(self.path, exist_ok=True)
            self.fd = os.open(self.path, _OPEN_DIRECTORY)
        except (FileExistsError, NotADirectoryError):
            raise UnusableWorkspace(f"{self.path} is not a directory") from None
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.fd)
            raise DirectoryLocked(f"{self.path} is being synced by another process") from None

    def close(self) -> None:
        os.close(self.fd)

    def is_in_place(self) -> bool:
        """Whether the path still leads to this directory.

        False after it was moved, removed or mounted over.
        """
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self.fd))
        except OSError:
            return False

    def read(self, name: str) -> bytes | None:
        """Read a regular file. Returns None for anything else and for a missing file."""
        try:
            with self._open_parent(name) as (dir_fd, base_name):
                return _read_regular(dir_fd, base_name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def digest(self, name: str) -> str | None:
        content = self.read(name)
        return None if content is None else digest_of(content)

    def put(self, name: str, content: bytes, expected_digest: str | None) -> bool:
        """Write a file if its current content has the expected digest (None: no file).

        Returns False and changes nothing if it has not.
        """
        with (
            self._open_parent(name, create=True) as (dir_fd, base_name),
            _temporary_file(dir_fd, base_name, content) as swap,
        ):
            if expected_digest is None:
                return _link_if_absent(dir_fd, swap, base_name)
            try:
                exchanged = _exchange(dir_fd, swap, base_name, expected_digest)
            except FileNotFoundError:
                return False
            if not exchanged:
                self._save_unless(dir_fd, swap, digest_of(content), name)
            return exchanged

    def remove(self, name: str, expected_digest: str) -> bool:
        """Remove a file if it has the expected digest, and directories that become empty.

        Returns False if it has another digest or does not exist.
        """
        try:
            with self._open_parent(name) as (dir_fd, base_name):
                swap = _SWAP_PREFIX + secrets.token_hex(8)
                os.rename(base_name, swap, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
                content = _read_regular(dir_fd, swap)
                if content is None or digest_of(content) != expected_digest:
                    if not _link_if_absent(dir_fd, swap, base_name):
                        self._save_unless(dir_fd, swap, expected_digest, name)
                    return False
                os.unlink(swap, dir_fd=dir_fd)
                os.fsync(dir_fd)
        except FileNotFoundError:
            return False
        self._prune(name)
        return True

    def write_copy(self, name: str, content: bytes) -> str:
        """Write content next to `name` and return the copy's name. Reuses an equal copy."""
        for copy_name in conflict_copy_names(name, digest_of(content)):
            if self.digest(copy_name) == digest_of(content) or self.put(copy_name, content, None):
                return copy_name
        raise FileExistsError(errno.EEXIST, "no free name for a copy", name)

    def write_state(self, state: bytes) -> None:
        """Replace the sync state file."""
        with _temporary_file(self.fd, STATE_FILE, state) as swap:
            os.rename(swap, STATE_FILE, src_dir_fd=self.fd, dst_dir_fd=self.fd)
            os.fsync(self.fd)

    def recover(self, known_digests: Collection[str]) -> list[str]:
        """Remove temporary files of an interrupted sync.

        Content with an unknown digest is kept as a copy; returns the copies' names.
        """
        recovered: list[str] = []
        for directory, subdirectories, files, dir_fd in os.fwalk(".", dir_fd=self.fd):
            subdirectories[:] = [name for name in subdirectories if not name.startswith(".")]
            for name in files:
                if name.startswith(_NEW_PREFIX):
                    os.unlink(name, dir_fd=dir_fd)
                elif name.startswith(_SWAP_PREFIX):
                    content = _read_regular(dir_fd, name)
                    if content is not None and digest_of(content) not in known_digests:
                        copy_name = os.path.normpath(os.path.join(directory, "recovered.md"))
                        recovered.append(self.write_copy(copy_name, content))
                    os.unlink(name, dir_fd=dir_fd)
        return recovered

    @contextlib.contextmanager
    def _open_parent(self, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of the directory that contains `name`, and its base name."""
        *parents, base_name = parts = name.split("/")
        if {"", ".", ".."} & set(parts):
            raise OSError(errno.EINVAL, "not a name within the directory", name)
        dir_fd = os.dup(self.fd)
        try:
            for part in parents:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=dir_fd)
                        os.fsync(dir_fd)
                child_fd = os.open(part, _OPEN_DIRECTORY, dir_fd=dir_fd)
                os.close(dir_fd)
                dir_fd = child_fd
            yield dir_fd, base_name
        finally:
            os.close(dir_fd)

    def _save_unless(self, dir_fd: int, swap: str, digest: str, name: str) -> None:
        """Delete the swap file; first copy its content if it has another digest."""
        content = _read_regular(dir_fd, swap)
        if content is not None and digest_of(content) != digest:
            self.write_copy(name, content)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(swap, dir_fd=dir_fd)

    def _prune(self, name: str) -> None:
        while "/" in name:
            name = name.rpartition("/")[0]
            try:
                with self._open_parent(name) as (dir_fd, base_name):
                    os.rmdir(base_name, dir_fd=dir_fd)
            except OSError:
                return


def _read_regular(dir_fd: int, name: str) -> bytes | None:
    try:
        fd = os.open(name, _OPEN_READ, dir_fd=dir_fd)
    except OSError as problem:
        if problem.errno in {errno.ENOENT, errno.ELOOP, errno.ENXIO}:
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


@contextlib.contextmanager
def _temporary_file(dir_fd: int, base_name: str, content: bytes) -> Iterator[str]:
    """Yield a complete temporary file with the mode of the file that it replaces.

    It is removed afterwards, but kept after a failure, because it may be the only copy of a
    content.
    """
    token = secrets.token_hex(8)
    new, swap = _NEW_PREFIX + token, _SWAP_PREFIX + token
    fd = os.open(new, _OPEN_CREATE, 0o666, dir_fd=dir_fd)
    try:
        with os.fdopen(fd, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                existing = os.stat(base_name, dir_fd=dir_fd, follow_symlinks=False)
                os.fchmod(fd, stat.S_IMODE(existing.st_mode))
            file.write(content)
            file.flush()
            os.fsync(fd)
    except OSError:  # Free the space: the disk may be full.
        os.unlink(new, dir_fd=dir_fd)
        raise
    os.rename(new, swap, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    yield swap
    with contextlib.suppress(FileNotFoundError):
        os.unlink(swap, dir_fd=dir_fd)


def _link_if_absent(dir_fd: int, swap: str, base_name: str) -> bool:
    """Link the swap file to its name if that is free."""
    try:
        os.link(swap, base_name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_HARD_LINK_ERRORS:
            raise
        if _exists(dir_fd, base_name):
            return False
        os.rename(swap, base_name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(swap, dir_fd=dir_fd)
    os.fsync(dir_fd)
    return True


def _exchange(dir_fd: int, swap: str, base_name: str, expected_digest: str) -> bool:
    """Exchange both files; undo it if the replaced content was not the expected one."""
    if not _has_digest(dir_fd, base_name, expected_digest):
        return False
    if not swap_names(
        swap, base_name, dir_fd
    ):  # No atomic exchange on this file system: a short race remains.
        os.rename(swap, base_name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    elif not _has_digest(dir_fd, swap, expected_digest):
        swap_names(swap, base_name, dir_fd)
        return False
    os.fsync(dir_fd)
    return True


def _has_digest(dir_fd: int, name: str, digest: str) -> bool:
    content = _read_regular(dir_fd, name)
    return content is not None and digest_of(content) == digest


def _exists(dir_fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
