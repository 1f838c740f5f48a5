"""Reads untrusted directories without following links or blocking."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import cache
from itertools import count
from pathlib import Path as File
from typing import Any, Final

from msgspec import Struct

from carrel.core.identifiers import MAX_PATH_BYTES, Digest
from carrel.ports.blobs import PART_BYTES

_STEP_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OPAQUE_XATTR: Final = "user.overlay.opaque"
_SYS_OPENAT2: Final = 437
_RESOLVE_FLAGS: Final = 0x02 | 0x04 | 0x08
"""RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH."""
_READABLE: Final = 0o500
"""Permissions of a directory that is only read: others would be changes of the command's own."""
_CAP_DAC_OVERRIDE: Final = 1
Segments = tuple[str, ...]
_TYPE_CHANGED_ERRNOS: Final = frozenset(
    {errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO}
)
"""Errors of opening a file that was replaced by a link, directory or FIFO."""
_libc: Any = ctypes.CDLL(None, use_errno=True)


class DirEntryKind(Enum):
    FILE = auto()
    LINK = auto()
    DIRECTORY = auto()
    OPAQUE_DIRECTORY = auto()
    """A directory that hides the lower directory of an overlay."""
    WHITEOUT = auto()
    """An overlay's marker of a deleted file."""
    OTHER = auto()


class DirEntry(Struct, frozen=True):
    """One directory entry."""

    segments: Segments
    kind: DirEntryKind
    mode: int
    size: int
    stamp: tuple[int, int, int]
    """Inode, ctime and mtime; every change of content changes ctime."""

    @property
    def text(self) -> str:
        return "/".join(self.segments)

    @property
    def mtime_ns(self) -> int:
        return self.stamp[2]


class TooManyEntries(Exception):
    """The directory has more entries than the limit."""


def walk(root: int, max_entries: int) -> Iterator[DirEntry]:
    """Yield all entries below a directory, parents first.

    Raises TooManyEntries above ``max_entries``. Entries that vanish or change type meanwhile are
    left out.
    """
    pending: list[Segments] = [()]
    entry_count = 0
    while pending:
        segments = pending.pop()
        with (
            suppress(FileNotFoundError),
            as_not_found(),
            _open_listable(root, segments) as directory,
        ):
            for entry in _list_directory(directory, segments):
                entry_count += 1
                if entry_count > max_entries:
                    raise TooManyEntries
                yield entry
                if entry.kind in {
                    DirEntryKind.DIRECTORY,
                    DirEntryKind.OPAQUE_DIRECTORY,
                } and can_hold_paths(entry):
                    pending.append(entry.segments)


@contextmanager
def as_not_found() -> Iterator[None]:
    """Raise FileNotFoundError for errors of an entry whose type changed meanwhile."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _TYPE_CHANGED_ERRNOS:
            raise FileNotFoundError(errno.ENOENT, "the entry changed its type") from problem
        raise


def can_hold_paths(entry: DirEntry) -> bool:
    """Whether files in the directory can have a valid path length."""
    return sum(len(os.fsencode(part)) + 1 for part in entry.segments) < MAX_PATH_BYTES


def _list_directory(directory: int, segments: Segments) -> Iterator[DirEntry]:
    for name in sorted(os.listdir(directory)):
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:  # deleted concurrently
            continue
        kind = _entry_kind(status)
        if kind is DirEntryKind.DIRECTORY and _is_opaque(directory, name):
            kind = DirEntryKind.OPAQUE_DIRECTORY
        stamp = (status.st_ino, status.st_ctime_ns, status.st_mtime_ns)
        yield DirEntry((*segments, name), kind, stat.S_IMODE(status.st_mode), status.st_size, stamp)


def _entry_kind(status: os.stat_result) -> DirEntryKind:
    if stat.S_ISREG(status.st_mode):
        return DirEntryKind.FILE
    if stat.S_ISLNK(status.st_mode):
        return DirEntryKind.LINK
    if stat.S_ISDIR(status.st_mode):
        return DirEntryKind.DIRECTORY
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        return DirEntryKind.WHITEOUT
    return DirEntryKind.OTHER


def _is_opaque(directory: int, name: str) -> bool:
    with suppress(PermissionError):
        return _has_opaque_xattr(f"/proc/self/fd/{directory}/{name}")
    with _open_directory(directory, (name,), _READABLE) as unlocked:
        return _has_opaque_xattr(f"/proc/self/fd/{unlocked}/.")


def _has_opaque_xattr(path: str) -> bool:
    try:
        return os.getxattr(path, OPAQUE_XATTR, follow_symlinks=False) == b"y"
    except PermissionError:
        raise
    except OSError:
        return False


@contextmanager
def _open_listable(root: int, segments: Segments) -> Iterator[int]:
    """Open a directory for listing."""
    with _open_directory(root, segments, _READABLE) as step:
        fd = os.open(".", _LIST_FLAGS, dir_fd=step)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _open_directory(root: int, segments: Segments, needed: int = 0o700) -> Iterator[int]:
    """Open a directory below the root without following links, made accessible.

    `needed` are permissions that its owner gets if they are missing.
    """
    fd = open_beneath(root, segments, _STEP_FLAGS) if segments else os.dup(root)
    try:
        _unlock(fd, needed)
        yield fd
    finally:
        os.close(fd)


def open_beneath(root: int, segments: Segments, flags: int) -> int:
    """Open a path below a directory without following links. Raises OSError."""
    how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE_FLAGS)
    path = os.fsencode("/".join(segments))
    descriptor = int(
        _libc.syscall(_SYS_OPENAT2, root, path, ctypes.byref(how), ctypes.c_size_t(24))
    )
    if descriptor >= 0:
        return descriptor
    code = ctypes.get_errno()
    if code == errno.ENOSYS:
        return _open_stepwise(root, segments, flags)
    raise OSError(code, os.strerror(code))


def _open_stepwise(root: int, segments: Segments, flags: int) -> int:
    fd = os.dup(root)
    try:
        for part in segments[:-1]:
            fd, before = os.open(part, _STEP_FLAGS, dir_fd=fd), fd
            os.close(before)
        return os.open(segments[-1], flags, dir_fd=fd)
    finally:
        os.close(fd)


def _unlock(fd: int, needed: int) -> None:
    """Restore the owner's permissions, which a command may have removed.

    A process that may override them changes nothing, since the modes are the command's own.
    """
    mode = os.fstat(fd).st_mode
    if mode & needed != needed and not _can_override_permissions():
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(mode) | needed)


@cache
def _can_override_permissions() -> bool:
    """Whether this process has the capability CAP_DAC_OVERRIDE."""
    status = File("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) & 1 << _CAP_DAC_OVERRIDE)


def restore_modes(root: int, entries: Iterable[DirEntry]) -> None:
    """Set the modes of directories that could only be read with other ones."""
    kinds = {DirEntryKind.DIRECTORY, DirEntryKind.OPAQUE_DIRECTORY}
    changed = [entry for entry in entries if entry.kind in kinds and ~entry.mode & _READABLE]
    for entry in reversed(changed):
        with suppress(OSError):  # a job may have removed it
            set_mode(root, entry.segments, entry.mode)


def set_mode(root: int, segments: Segments, mode: int) -> None:
    """Set the permission bits of a file or directory, never of a link's target."""
    fd = open_beneath(root, segments, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISLNK(os.fstat(fd).st_mode):
            os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


@contextmanager
def open_parent(root: int, segments: Segments) -> Iterator[int]:
    """Open the directory that contains the path."""
    with _open_directory(root, segments[:-1]) as parent:
        yield parent


def remove_directory(directory: File) -> None:
    """Remove a directory tree of any depth, including directories without permissions."""
    try:
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_entries(root)
    finally:
        os.close(root)
    directory.rmdir()


def remove_entries(root: int) -> None:
    """Remove everything below a directory that nobody else changes.

    Directories are moved up before they are removed, so that depth costs neither stack nor path
    length.
    """
    numbers = count()
    pending = _remove_files(root)
    while pending:
        name = pending.pop()
        with _open_directory(root, (name,)) as step:
            directory = os.open(".", _LIST_FLAGS, dir_fd=step)
        try:
            for child in _remove_files(directory):
                with _open_directory(directory, (child,)):  # a locked directory cannot be moved
                    pass
                moved = f".removed-{next(numbers)}"
                os.rename(child, moved, src_dir_fd=directory, dst_dir_fd=root)
                pending.append(moved)
        finally:
            os.close(directory)
        os.rmdir(name, dir_fd=root)


def _remove_files(directory: int) -> list[str]:
    """Remove all entries but directories, and return these."""
    directories = []
    for name in os.listdir(directory):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            directories.append(name)
        else:
            os.unlink(name, dir_fd=directory)
    return directories


def read(root: int, segments: Segments, kind: DirEntryKind) -> bytes:
    """Return a file's bytes or a link's target.

    Raises FileNotFoundError if it is gone or has another type.
    """
    return b"".join(read_parts(root, segments, kind))


def hash_entry(root: int, entry: DirEntry) -> Digest:
    """Return the digest of a file or link target. Raises FileNotFoundError."""
    hasher = hashlib.sha256()
    for part in read_parts(root, entry.segments, entry.kind):
        hasher.update(part)
    return Digest(f"sha256:{hasher.hexdigest()}")


def read_parts(root: int, segments: Segments, kind: DirEntryKind) -> Iterator[bytes]:
    """Yield the same as ``read`` in parts, so that a large file is not held whole."""
    with as_not_found(), _open_directory(root, segments[:-1], _READABLE) as parent:
        if kind is DirEntryKind.LINK:
            yield os.fsencode(os.readlink(segments[-1], dir_fd=parent))
            return
        file = os.fdopen(_open_file(parent, segments[-1]), "rb", buffering=0)
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileNotFoundError
        while part := file.read(PART_BYTES):
            yield part


def _open_file(parent: int, name: str) -> int:
    try:
        return os.open(name, _READ_FLAGS, dir_fd=parent)
    except PermissionError:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileNotFoundError from None
            _unlock(fd, 0o400)
            return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.close(fd)
