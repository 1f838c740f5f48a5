"""Reading what somebody hostile has left: no link is followed, nothing is waited for."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from carrel.core.identifiers import LONGEST_PATH

_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OPAQUE: Final = "user.overlay.opaque"
_OPENAT2: Final = 437
_NO_LINKS: Final = 0x02 | 0x04 | 0x08
"""RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH."""
Segments = tuple[str, ...]
_ANOTHER: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO})
"""What becomes of opening a file where there is a link, a directory or a FIFO by now."""
_libc: Any = ctypes.CDLL(None, use_errno=True)


class DirEntryKind(Enum):
    FILE = auto()
    LINK = auto()
    DIRECTORY = auto()
    REPLACED = auto()
    """A directory that hides all that was at its place before."""
    GONE = auto()
    """How an overlay says that something was deleted."""
    OTHER = auto()


class DirEntry(Struct, frozen=True):
    """One thing that is there."""

    at: Segments
    kind: DirEntryKind
    mode: int
    size: int
    mark: tuple[int, int, int]
    """Inode and times: no content can change without it, since nobody can forge the ctime."""

    @property
    def text(self) -> str:
        return "/".join(self.at)


class TooManyEntries(Exception):
    """There is more than anybody should read."""


def walk(root: int, most: int) -> Iterator[DirEntry]:
    """All beneath a directory, a directory before what is in it. Raises TooMany beyond ``most``.

    What is gone or another thing before it was its turn is left out.
    """
    left: list[Segments] = [()]
    seen = 0
    while left:
        where = left.pop()
        with suppress(FileNotFoundError), still_there(), _opened(root, where) as directory:
            for found in _listed(directory, where):
                seen += 1
                if seen > most:
                    raise TooManyEntries
                yield found
                if found.kind in {DirEntryKind.DIRECTORY, DirEntryKind.REPLACED} and can_hold_paths(
                    found
                ):
                    left.append(found.at)


@contextmanager
def still_there() -> Iterator[None]:
    """Raises FileNotFoundError for all that is so because it became another thing meanwhile."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _ANOTHER:
            raise FileNotFoundError(errno.ENOENT, "it is another thing by now") from problem
        raise


def can_hold_paths(found: DirEntry) -> bool:
    """Whether anything in a directory can be a file of a workspace."""
    return sum(len(os.fsencode(part)) + 1 for part in found.at) < LONGEST_PATH


def _listed(directory: int, where: Segments) -> Iterator[DirEntry]:
    for name in sorted(os.listdir(directory)):
        try:
            about = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:  # somebody is still at work there
            continue
        kind = _kind(about)
        if kind is DirEntryKind.DIRECTORY and _is_opaque(directory, name):
            kind = DirEntryKind.REPLACED
        mark = (about.st_ino, about.st_ctime_ns, about.st_mtime_ns)
        yield DirEntry((*where, name), kind, stat.S_IMODE(about.st_mode), about.st_size, mark)


def _kind(about: os.stat_result) -> DirEntryKind:
    if stat.S_ISREG(about.st_mode):
        return DirEntryKind.FILE
    if stat.S_ISLNK(about.st_mode):
        return DirEntryKind.LINK
    if stat.S_ISDIR(about.st_mode):
        return DirEntryKind.DIRECTORY
    if stat.S_ISCHR(about.st_mode) and about.st_rdev == 0:
        return DirEntryKind.GONE
    return DirEntryKind.OTHER


def _is_opaque(directory: int, name: str) -> bool:
    with suppress(PermissionError):
        return _says_opaque(f"/proc/self/fd/{directory}/{name}")
    with _reached(directory, (name,)) as unlocked:
        return _says_opaque(f"/proc/self/fd/{unlocked}/.")


def _says_opaque(place: str) -> bool:
    try:
        return os.getxattr(place, OPAQUE, follow_symlinks=False) == b"y"
    except PermissionError:
        raise
    except OSError:
        return False


@contextmanager
def _opened(root: int, where: Segments) -> Iterator[int]:
    """A directory that can be listed."""
    with _reached(root, where) as step:
        fd = os.open(".", _LIST, dir_fd=step)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _reached(root: int, where: Segments) -> Iterator[int]:
    """A directory beneath another, with no link on the way and its owner let in."""
    fd = beneath(root, where, _STEP) if where else os.dup(root)
    try:
        if where:
            _unlock(fd, 0o700)
        yield fd
    finally:
        os.close(fd)


def beneath(root: int, where: Segments, flags: int) -> int:
    """Open what is beneath a directory, following no link on the way. Raises OSError."""
    how = (ctypes.c_uint64 * 3)(flags, 0, _NO_LINKS)
    path = os.fsencode("/".join(where))
    found = int(_libc.syscall(_OPENAT2, root, path, ctypes.byref(how), ctypes.c_size_t(24)))
    if found >= 0:
        return found
    code = ctypes.get_errno()
    if code == errno.ENOSYS:
        return _stepwise(root, where, flags)
    raise OSError(code, os.strerror(code))


def _stepwise(root: int, where: Segments, flags: int) -> int:
    fd = os.dup(root)
    try:
        for part in where[:-1]:
            fd, before = os.open(part, _STEP, dir_fd=fd), fd
            os.close(before)
        return os.open(where[-1], flags, dir_fd=fd)
    finally:
        os.close(fd)


def _unlock(fd: int, needed: int) -> None:
    """Let its owner in again, where a command has locked itself out. It is no link: it is open."""
    mode = os.fstat(fd).st_mode
    if mode & needed != needed:
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(mode) | needed)


@contextmanager
def parent_of(root: int, at: Segments) -> Iterator[int]:
    """The directory that something is in."""
    with _reached(root, at[:-1]) as parent:
        yield parent


def read(root: int, at: Segments, kind: DirEntryKind) -> bytes:
    """A file's bytes, or where a link points to.

    Raises FileNotFoundError where it is that no more.
    """
    with still_there(), _reached(root, at[:-1]) as parent:
        if kind is DirEntryKind.LINK:
            return os.fsencode(os.readlink(at[-1], dir_fd=parent))
        with os.fdopen(_file(parent, at[-1]), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileNotFoundError
            return file.read()


def _file(parent: int, name: str) -> int:
    try:
        return os.open(name, _READ, dir_fd=parent)
    except PermissionError:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileNotFoundError from None
            _unlock(fd, 0o400)
            return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.close(fd)
