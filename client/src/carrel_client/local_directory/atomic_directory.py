"""Atomic replacement of a directory: readers see the old files or the new.

The new files are written into a staging directory beside it, which is then exchanged with it.
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

from carrel_client.errors import NotACarrelDirectory, UnsafePath, UnusableWorkspace
from carrel_client.local_directory.atomic_rename import swap_names
from carrel_client.local_directory.local_files import read_regular
from carrel_client.local_directory.path_safety import STATE_FILE

ProgressCallback = Callable[[str, int, int], None]
"""Called with an activity, the count that is done, and the total."""

_LOCK: Final = "lock"
_OLD: Final = "old"
_NEW: Final = "new-"
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DirectoryLock:
    """Lock between processes; it ends with the process that holds it."""

    def __init__(self, file: str) -> None:
        self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; does not wait."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class TargetDirectory:
    """Directory by its real path, with the staging directory beside it."""

    target: str
    staging: str

    @classmethod
    def at(cls, directory: str | os.PathLike[str]) -> TargetDirectory:
        """Create the staging directory. Raises UnusableWorkspace for a mount point."""
        try:
            target = os.path.realpath(directory)
        except ValueError:
            raise UnusableWorkspace(
                f"{os.fspath(directory)!a} is not a valid directory name"
            ) from None
        parent, name = os.path.split(target)
        if not name or os.path.ismount(target):
            raise UnusableWorkspace(f"{target} is a mount point; choose a directory within it")
        os.makedirs(parent, exist_ok=True)
        staging = os.path.join(parent, f".{name}.carrel")
        with contextlib.suppress(FileExistsError):
            os.mkdir(staging, 0o700)
        if not stat.S_ISDIR(os.lstat(staging).st_mode):
            raise NotACarrelDirectory(f"{staging} exists and is not a directory")
        return cls(target, staging)

    def lock(self) -> DirectoryLock:
        return DirectoryLock(os.path.join(self.staging, _LOCK))

    def recover(self) -> None:
        """Finish or undo an interrupted replacement. The caller holds the lock."""
        old = os.path.join(self.staging, _OLD)
        if os.path.lexists(old):
            if os.path.lexists(self.target):
                os.rename(old, self._new_name())
            else:
                os.rename(old, self.target)
        for name in os.listdir(self.staging):
            if name.startswith(_NEW):
                _remove(os.path.join(self.staging, name))

    def read_state(self) -> bytes | None:
        """Return the state file; None if the directory is absent or empty.

        Raises NotACarrelDirectory if it has files but no state file.
        """
        try:
            names = os.listdir(self.target)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise NotACarrelDirectory(f"{self.target} is not a directory") from None
        state = None
        if STATE_FILE in names:
            state = read_regular(os.path.join(self.target, STATE_FILE))
        if names and state is None:
            raise NotACarrelDirectory(
                f"{self.target} is not empty, and was not written by materialize"
            )
        return state

    def find_clash(self, names: Sequence[str]) -> str | None:
        """Return the first name that this file system treats as an earlier one.

        Creates the names as empty files to find out.
        """
        directory = self._new_name()
        os.mkdir(directory)
        try:
            for name in names:
                try:
                    os.close(os.open(os.path.join(directory, name), _CREATE))
                except FileExistsError:
                    return name
            return None
        finally:
            _remove(directory)

    def replace(
        self, files: Mapping[str, bytes], state: bytes, progress: ProgressCallback | None
    ) -> None:
        """Replace the content of the directory by exactly these files."""
        new = self._new_name()
        try:
            _write(new, files, state, progress)
            self._swap_in(new)
        finally:
            _remove(new)

    def write_state(self, state: bytes) -> None:
        """Replace only the state file."""
        new = self._new_name()
        try:
            _create(new, state)
            os.rename(new, os.path.join(self.target, STATE_FILE))
        finally:
            _remove(new)

    def _new_name(self) -> str:
        return os.path.join(self.staging, _NEW + secrets.token_hex(8))

    def _swap_in(self, new: str) -> None:
        """Put the new directory in place; afterwards the old one has the new one's name."""
        try:
            existing = os.lstat(self.target)
        except FileNotFoundError:
            os.rename(new, self.target)
        else:
            if not swap_names(new, self.target):
                self._swap_in_two_steps(new)
            os.chmod(self.target, stat.S_IMODE(existing.st_mode))
        _sync_directory(os.path.dirname(self.target))
        _sync_directory(self.staging)

    def _swap_in_two_steps(self, new: str) -> None:
        """Swap on systems that cannot exchange names; ``recover`` repairs an interruption."""
        old = os.path.join(self.staging, _OLD)
        os.rename(self.target, old)
        try:
            os.rename(new, self.target)
        except OSError:
            os.rename(old, self.target)
            raise
        os.rename(old, new)


def _write(
    root: str, files: Mapping[str, bytes], state: bytes, progress: ProgressCallback | None
) -> None:
    os.mkdir(root)
    directories = {""}
    for number, (path, content) in enumerate(sorted(files.items()), 1):
        for directory in _parents(path):
            if directory not in directories:
                _refuse_existing(os.mkdir, os.path.join(root, directory))
                directories.add(directory)
        _refuse_existing(_create, os.path.join(root, path), content)
        if progress is not None:
            progress("writing files", number, len(files))
    _create(os.path.join(root, STATE_FILE), state)
    for directory in directories:
        _sync_directory(os.path.join(root, directory))


def _parents(path: str) -> list[str]:
    """Return the parent directories of a path, outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _refuse_existing(create: Callable[..., None], path: str, *content: bytes) -> None:
    try:
        create(path, *content)
    except FileExistsError:
        raise UnsafePath(f"{path!a} would be the same file as another") from None


def _create(path: str, content: bytes) -> None:
    fd = os.open(path, _CREATE, 0o666)
    try:
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[os.write(fd, remaining) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_directory(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    """Remove a file or directory, ignoring errors; ``recover`` tries again."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
