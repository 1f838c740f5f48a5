"""One directory, held open and locked: nothing in it is replaced unseen, nothing outside touched.

Every name is walked from the directory's descriptor without following a link. A file is written
beside its name and changes places with what is there; if that turns out to be another text than was
expected, it is put back. What a crash leaves behind is looked through by ``recover``.
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
from carrel_client.atomic_rename import swap_names
from carrel_client.errors import DirectoryLocked, UnusableWorkspace

STATE: Final = ".carrel-sync.json"
LARGEST: Final = 4 * 2**20
"""Bytes. No server takes more."""

_NEW: Final = ".carrel-new-"
"""Being written: worth nothing after a crash."""
_SWAP: Final = ".carrel-swap-"
"""Whole: after a crash it may be the only place of a text."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


class SyncedDirectory:
    """Raises Occupied where another holds it, and Unfit for what is no directory."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(directory)
        try:
            os.makedirs(self.path, exist_ok=True)
            self.fd = os.open(self.path, _DIRECTORY)
        except (FileExistsError, NotADirectoryError):
            raise UnusableWorkspace(f"{self.path} is not a directory") from None
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.fd)
            raise DirectoryLocked(f"{self.path} is being synced by another") from None

    def close(self) -> None:
        os.close(self.fd)

    def is_in_place(self) -> bool:
        """Whether its name still leads to it: not once it was moved, removed or mounted over."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self.fd))
        except OSError:
            return False

    def read(self, name: str) -> bytes | None:
        """The content of a regular file; None for whatever else is there, or for nothing."""
        try:
            with self._room(name) as (room, last):
                return _content(room, last)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def digest(self, name: str) -> str | None:
        content = self.read(name)
        return None if content is None else digest_of(content)

    def put(self, name: str, content: bytes, was: str | None) -> bool:
        """Put a file where one of this digest is, or none. False where that is not so: nothing is
        done then."""
        with self._room(name, make=True) as (room, last), _written(room, last, content) as swap:
            if was is None:
                return _linked(room, swap, last)
            try:
                done = _exchanged(room, swap, last, was)
            except FileNotFoundError:
                return False
            if not done:
                self._keep_unless(room, swap, digest_of(content), name)
            return done

    def remove(self, name: str, was: str) -> bool:
        """Remove a file of this digest, and directories that are empty then. False if it is not."""
        try:
            with self._room(name) as (room, last):
                swap = _SWAP + secrets.token_hex(8)
                os.rename(last, swap, src_dir_fd=room, dst_dir_fd=room)
                found = _content(room, swap)
                if found is None or digest_of(found) != was:
                    if not _linked(room, swap, last):
                        self._keep_unless(room, swap, was, name)
                    return False
                os.unlink(swap, dir_fd=room)
                os.fsync(room)
        except FileNotFoundError:
            return False
        self._prune(name)
        return True

    def copy(self, name: str, content: bytes) -> str:
        """Put a text beside a name; if it stands there already, that is where."""
        for beside in conflict_copy_names(name, digest_of(content)):
            if self.digest(beside) == digest_of(content) or self.put(beside, content, None):
                return beside
        raise FileExistsError(errno.EEXIST, "no name is free for a copy beside", name)

    def note(self, state: bytes) -> None:
        """Replace what is noted of the directory."""
        with _written(self.fd, STATE, state) as swap:
            os.rename(swap, STATE, src_dir_fd=self.fd, dst_dir_fd=self.fd)
            os.fsync(self.fd)

    def recover(self, known: Collection[str]) -> list[str]:
        """Clear away what a crash left; texts of no known digest are kept, and their names told."""
        kept: list[str] = []
        for at, below, files, room in os.fwalk(".", dir_fd=self.fd):
            below[:] = [name for name in below if not name.startswith(".")]
            for name in files:
                if name.startswith(_NEW):
                    os.unlink(name, dir_fd=room)
                elif name.startswith(_SWAP):
                    content = _content(room, name)
                    if content is not None and digest_of(content) not in known:
                        beside = os.path.normpath(os.path.join(at, "recovered.md"))
                        kept.append(self.copy(beside, content))
                    os.unlink(name, dir_fd=room)
        return kept

    @contextlib.contextmanager
    def _room(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The directory that a name is in, by its descriptor, and the last part of the name."""
        *above, last = parts = name.split("/")
        if {"", ".", ".."} & set(parts):
            raise OSError(errno.EINVAL, "it is no name within the directory", name)
        room = os.dup(self.fd)
        try:
            for part in above:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=room)
                        os.fsync(room)
                below = os.open(part, _DIRECTORY, dir_fd=room)
                os.close(room)
                room = below
            yield room, last
        finally:
            os.close(room)

    def _keep_unless(self, room: int, swap: str, digest: str, name: str) -> None:
        """What lies there is taken away by whoever wrote it, unless somebody else has written."""
        content = _content(room, swap)
        if content is not None and digest_of(content) != digest:
            self.copy(name, content)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(swap, dir_fd=room)

    def _prune(self, name: str) -> None:
        while "/" in name:
            name = name.rpartition("/")[0]
            try:
                with self._room(name) as (room, last):
                    os.rmdir(last, dir_fd=room)
            except OSError:
                return


def _content(room: int, name: str) -> bytes | None:
    try:
        fd = os.open(name, _READ, dir_fd=room)
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
def _written(room: int, last: str, content: bytes) -> Iterator[str]:
    """A whole file under a passing name, with the mode of the one that it is to replace.

    Once whole it is gone afterwards, but not after a failure: it may then be the only place of a
    text.
    """
    token = secrets.token_hex(8)
    new, swap = _NEW + token, _SWAP + token
    fd = os.open(new, _CREATE, 0o666, dir_fd=room)
    try:
        with os.fdopen(fd, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(last, dir_fd=room, follow_symlinks=False)
                os.fchmod(fd, stat.S_IMODE(there.st_mode))
            file.write(content)
            file.flush()
            os.fsync(fd)
    except OSError:  # A disk that is full needs every byte.
        os.unlink(new, dir_fd=room)
        raise
    os.rename(new, swap, src_dir_fd=room, dst_dir_fd=room)
    yield swap
    with contextlib.suppress(FileNotFoundError):
        os.unlink(swap, dir_fd=room)


def _linked(room: int, swap: str, last: str) -> bool:
    """Give it its name, if nothing has that yet."""
    try:
        os.link(swap, last, src_dir_fd=room, dst_dir_fd=room, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        if _exists(room, last):
            return False
        os.rename(swap, last, src_dir_fd=room, dst_dir_fd=room)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(swap, dir_fd=room)
    os.fsync(room)
    return True


def _exchanged(room: int, swap: str, last: str, was: str) -> bool:
    """Let both change places; back again, where what was there is not what it should have been."""
    if not _is(room, last, was):
        return False
    if not swap_names(swap, last, room):  # As good as can be had here: a moment is left.
        os.rename(swap, last, src_dir_fd=room, dst_dir_fd=room)
    elif not _is(room, swap, was):
        swap_names(swap, last, room)
        return False
    os.fsync(room)
    return True


def _is(room: int, name: str, digest: str) -> bool:
    content = _content(room, name)
    return content is not None and digest_of(content) == digest


def _exists(room: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=room, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
