"""Scans a synced directory: settled files, files being written, and problems."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from carrel.cli.sync.directory import MAX_FILE_BYTES, SyncedDirectory, digest_of
from carrel.core.errors import ValidationError
from carrel.core.files.directory_sync import is_ignored
from carrel.core.identifiers import Path

FileStamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime; differs after the file was changed."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DUPLICATE_NAME: Final = "another file has the same name in a different Unicode normalization"
_CONTROL_CHARS: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_NO_COPIES: Final[Mapping[str, str]] = {}
_STABLE_AGE_SECONDS: Final = 2.0
"""Age from which a later change cannot have the same timestamp.

Longer than the resolution of any file system's clock.
"""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    name: str
    """Name on disk; its Unicode normalization may differ from the server's path."""
    digest: str


@dataclass(slots=True)
class ScanResult:
    files: dict[str, ScannedFile] = field(default_factory=dict)
    """By path on the server."""
    problems: dict[str, str] = field(default_factory=dict)
    """Reasons why files cannot be synced, by path."""
    unsettled: set[str] = field(default_factory=set)
    """Paths that are being written or were just removed; their state is not known yet."""
    copies: set[str] = field(default_factory=set)
    """Those of the requested copies that exist."""

    def is_determined(self, path: str) -> bool:
        """Whether the state of a path is known: its content, or that it is absent."""
        parts = path.split("/")
        ancestors = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        return path not in self.unsettled and not any(
            ancestor in self.problems for ancestor in ancestors
        )


@dataclass(frozen=True, slots=True)
class _ReadResult:
    stamp: FileStamp
    digest: str | None
    problem: str = ""
    is_reusable: bool = True
    """Whether the stamp is old enough to detect the next change."""


class _ClockReadings(NamedTuple):
    now: float
    elapsed: float
    """Monotonic seconds."""


class FileChangedWhileRead(Exception):
    """The file was written to while it was read."""


class DirectoryScanner:
    """Scans a directory repeatedly; caches digests of unchanged files."""

    def __init__(
        self,
        directory: SyncedDirectory,
        settle_seconds: float,
        *,
        elapsed: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._directory, self._settle_seconds = directory, settle_seconds
        self._elapsed, self._now = elapsed, now
        self._cache: dict[str, _ReadResult] = {}
        self._since: dict[str, tuple[FileStamp | None, float]] = {}
        """Last stamp of a path that changed recently, and since when it has that stamp."""
        self._waiting: set[str] = set()

    def scan(
        self, expected_paths: Collection[str], copies: Mapping[str, str] = _NO_COPIES
    ) -> ScanResult:
        """Scan the directory once.

        `expected_paths` are paths whose absence would be a deletion. `copies` maps paths to the
        names of their conflict copies.
        """
        result, seen_paths = ScanResult(), set()
        scanned_at = self._read_clocks()
        for name, dir_fd, base_name, problem in self._walk():
            path = unicodedata.normalize("NFC", name)
            is_duplicate = path in seen_paths
            seen_paths.add(path)
            if (
                reason := problem
                or _path_problem(path)
                or (_DUPLICATE_NAME if is_duplicate else "")
            ):
                result.problems[printable_path(path)] = reason
            else:
                self._scan_file(result, path, name, dir_fd, base_name)
        for path in expected_paths:
            if (
                path not in seen_paths
                and result.is_determined(path)
                and not self._is_settled(path, None, scanned_at)
            ):
                result.unsettled.add(path)
        for path, copy in copies.items():
            if self._directory.digest(copy) is not None:
                result.copies.add(copy)
            elif not self._is_settled(copy, None, scanned_at):
                result.unsettled.add(path)
        self._since = {path: self._since[path] for path in self._waiting}
        self._waiting = set()
        return result

    def _walk(self) -> Iterator[tuple[str, int, str, str]]:
        """Yield every name: path, directory descriptor, base name and problem."""
        for directory, subdirectories, files, dir_fd in os.fwalk(
            ".", dir_fd=self._directory.fd, onerror=_raise_unless_missing
        ):
            prefix = "" if directory == "." else directory.removeprefix("./") + "/"
            for name in [*subdirectories]:
                if is_ignored(name):
                    subdirectories.remove(name)
                elif problem := _directory_problem(dir_fd, name):
                    subdirectories.remove(name)
                    yield prefix + name, dir_fd, name, problem
            for name in sorted(files):
                if not is_ignored(name):
                    yield prefix + name, dir_fd, name, ""

    def _scan_file(
        self, result: ScanResult, path: str, name: str, dir_fd: int, base_name: str
    ) -> None:
        read_at = self._read_clocks()
        try:
            read = self._read_cached(path, dir_fd, base_name)
        except (FileChangedWhileRead, FileNotFoundError):
            result.unsettled.add(path)
            self._since.setdefault(path, (None, self._elapsed()))
            self._waiting.add(path)
            return
        except OSError as problem:
            is_symlink = problem.errno == errno.ELOOP
            reason = "is a symbolic link" if is_symlink else f"cannot be read: {problem.strerror}"
            result.problems[path] = reason
            return
        if not self._is_settled(path, read.stamp, read_at):
            result.unsettled.add(path)
        elif read.digest is None:
            result.problems[path] = read.problem
        else:
            result.files[path] = ScannedFile(name, read.digest)

    def _read_cached(self, path: str, dir_fd: int, base_name: str) -> _ReadResult:
        """Return the cached or newly read result. Raises OSError, FileChangedWhileRead."""
        stamp, mode = _stamp_of(os.stat(base_name, dir_fd=dir_fd, follow_symlinks=False))
        cached = self._cache.get(path)
        if cached is not None and cached.is_reusable and cached.stamp == stamp:
            return cached
        if not stat.S_ISREG(mode):
            problem = "is a symbolic link" if stat.S_ISLNK(mode) else "is not a regular file"
            return _ReadResult(stamp, None, problem, is_reusable=False)
        fd = os.open(base_name, _READ, dir_fd=dir_fd)
        try:
            read = _read_file(fd, self._now())
        finally:
            os.close(fd)
        self._cache[path] = read
        return read

    def _read_clocks(self) -> _ClockReadings:
        return _ClockReadings(self._now(), self._elapsed())

    def _is_settled(self, path: str, stamp: FileStamp | None, read_at: _ClockReadings) -> bool:
        """Whether a path was unchanged for the settle time, by its times or by scans.

        Times before the path was read count: it may have changed since.
        """
        if stamp is not None and self._settle_seconds < _age(stamp, read_at.now):
            return True
        previous_stamp, since = self._since.get(path, (stamp, self._elapsed()))
        if previous_stamp != stamp:
            since = self._elapsed()
        if self._settle_seconds == 0 or read_at.elapsed - since >= self._settle_seconds:
            return True
        self._since[path] = (stamp, since)
        self._waiting.add(path)
        return False


def printable_path(path: str) -> str:
    """Escape a name for printing. Valid paths stay unchanged."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return _CONTROL_CHARS.sub(lambda match: ascii(match[0])[1:-1], text)


def _raise_unless_missing(problem: OSError) -> None:
    """Error handler of os.fwalk: an unreadable directory must not look empty."""
    if not isinstance(problem, FileNotFoundError):
        raise problem


def _directory_problem(dir_fd: int, name: str) -> str:
    try:
        os.close(os.open(name, _DIRECTORY, dir_fd=dir_fd))
    except FileNotFoundError:
        return ""
    except NotADirectoryError:
        return "is a symbolic link"
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"
    return ""


def _stamp_of(info: os.stat_result) -> tuple[FileStamp, int]:
    stamp = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    return stamp, info.st_mode


def _age(stamp: FileStamp, now: float) -> float:
    return now - max(stamp[3:]) / 1e9


def _read_file(fd: int, now: float) -> _ReadResult:
    stamp, mode = _stamp_of(os.fstat(fd))
    if not stat.S_ISREG(mode):
        return _ReadResult(stamp, None, "is not a regular file", is_reusable=False)
    if stamp[2] > MAX_FILE_BYTES:
        return _ReadResult(stamp, None, f"has {stamp[2]} bytes; the limit is {MAX_FILE_BYTES}")
    with os.fdopen(fd, "rb", closefd=False) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if _stamp_of(os.fstat(fd))[0] != stamp:
        raise FileChangedWhileRead
    is_reusable = _age(stamp, now) > _STABLE_AGE_SECONDS
    return _ReadResult(stamp, digest_of(content), is_reusable=is_reusable)


def _path_problem(path: str) -> str:
    try:
        Path(path)
    except ValidationError as problem:
        return str(problem)
    return ""
