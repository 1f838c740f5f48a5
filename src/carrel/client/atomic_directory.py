"""A directory that is replaced as a whole: what is there is the old or the new, never a mixture.

What is to come is written beside it, in a directory of our own, and changes places with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.client.atomic_rename import swap_names
from carrel.client.errors import NotACarrelDirectory, UnsafePath, UnusableWorkspace
from carrel.client.local_files import read_regular
from carrel.client.path_safety import STATE

Watch = Callable[[str, int, int], None]

_LOCK: Final = "lock"
_OLD: Final = "old"
_NEW: Final = "new-"
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DirectoryLock:
    """Held by at most one at a time, of all processes; it ends with the process that holds it."""

    def __init__(self, file: str) -> None:
        self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def taken(self) -> bool:
        """Try, without waiting."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class TargetDirectory:
    """A directory by its real path, and the one beside it in which it is prepared."""

    target: str
    beside: str

    @classmethod
    def at(cls, directory: str | os.PathLike[str]) -> TargetDirectory:
        """Raises Unfit for what cannot be replaced as a whole."""
        try:
            target = os.path.realpath(directory)
        except ValueError:
            raise UnusableWorkspace(f"{os.fspath(directory)!a} is no name of a directory") from None
        parent, name = os.path.split(target)
        if not name or os.path.ismount(target):
            raise UnusableWorkspace(f"{target} is a mount point; choose a directory within it")
        os.makedirs(parent, exist_ok=True)
        beside = os.path.join(parent, f".{name}.carrel")
        with contextlib.suppress(FileExistsError):
            os.mkdir(beside, 0o700)
        if not stat.S_ISDIR(os.lstat(beside).st_mode):
            raise NotACarrelDirectory(f"{beside} is in the way")
        return cls(target, beside)

    def lock(self) -> DirectoryLock:
        return DirectoryLock(os.path.join(self.beside, _LOCK))

    def recover(self) -> None:
        """Finish or undo what an earlier call could not. Only for who holds the lock."""
        old = os.path.join(self.beside, _OLD)
        if os.path.lexists(old):
            if os.path.lexists(self.target):
                os.rename(old, self._fresh())
            else:
                os.rename(old, self.target)
        for name in os.listdir(self.beside):
            if name.startswith(_NEW):
                _remove(os.path.join(self.beside, name))

    def known(self) -> bytes | None:
        """What an earlier call noted. Raises NotOurs for a directory that none has made."""
        try:
            names = os.listdir(self.target)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise NotACarrelDirectory(f"{self.target} is not a directory") from None
        noted = read_regular(os.path.join(self.target, STATE)) if STATE in names else None
        if names and noted is None:
            raise NotACarrelDirectory(
                f"{self.target} is not empty, and was not made by materialising"
            )
        return noted

    def clash(self, names: Sequence[str]) -> str | None:
        """Which of these names is one file with another, tried out where it will matter."""
        room = self._fresh()
        os.mkdir(room)
        try:
            for name in names:
                try:
                    os.close(os.open(os.path.join(room, name), _CREATE))
                except FileExistsError:
                    return name
            return None
        finally:
            _remove(room)

    def replace(self, files: Mapping[str, bytes], state: bytes, watch: Watch | None) -> None:
        """Make the directory hold exactly these files."""
        new = self._fresh()
        try:
            _write(new, files, state, watch)
            self._swap_in(new)
        finally:
            _remove(new)

    def note(self, state: bytes) -> None:
        """Change what is noted, and no file of the workspace."""
        new = self._fresh()
        try:
            _create(new, state)
            os.rename(new, os.path.join(self.target, STATE))
        finally:
            _remove(new)

    def _fresh(self) -> str:
        return os.path.join(self.beside, _NEW + secrets.token_hex(8))

    def _swap_in(self, new: str) -> None:
        """Afterwards, what was there has the name of the new."""
        try:
            there = os.lstat(self.target)
        except FileNotFoundError:
            os.rename(new, self.target)
        else:
            if not swap_names(new, self.target):
                self._swap_in_two(new)
            os.chmod(self.target, stat.S_IMODE(there.st_mode))
        _flush(os.path.dirname(self.target))
        _flush(self.beside)

    def _swap_in_two(self, new: str) -> None:
        """Where names cannot be exchanged. Who is interrupted in between is helped by recover."""
        old = os.path.join(self.beside, _OLD)
        os.rename(self.target, old)
        try:
            os.rename(new, self.target)
        except OSError:
            os.rename(old, self.target)
            raise
        os.rename(old, new)


def _write(root: str, files: Mapping[str, bytes], state: bytes, watch: Watch | None) -> None:
    os.mkdir(root)
    parents = {""}
    for number, (path, content) in enumerate(sorted(files.items()), 1):
        for directory in _above(path):
            if directory not in parents:
                _made(os.mkdir, os.path.join(root, directory))
                parents.add(directory)
        _made(_create, os.path.join(root, path), content)
        if watch is not None:
            watch("writing files", number, len(files))
    _create(os.path.join(root, STATE), state)
    for directory in parents:
        _flush(os.path.join(root, directory))


def _above(path: str) -> list[str]:
    """The directories that a path needs, outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _made(make: Callable[..., None], path: str, *more: bytes) -> None:
    try:
        make(path, *more)
    except FileExistsError:
        raise UnsafePath(f"{path!a} would be the same file as another") from None


def _create(path: str, content: bytes) -> None:
    fd = os.open(path, _CREATE, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def _flush(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    """As far as that can be done: what is left is in nobody's way, and is tried again."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
