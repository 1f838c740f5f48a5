"""What is in a directory: files that nobody is writing at the moment, and what cannot be synced."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from carrel.cli.sync.directory import LARGEST, SyncedDirectory, digest_of
from carrel.core.errors import ValidationError
from carrel.core.files.directory_sync import is_ignored
from carrel.core.identifiers import Path

Mark: TypeAlias = tuple[int, int, int, int, int]
"""By which it is noticed that a file was touched: device, inode, size, times of change."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TWICE: Final = "another name here is the same but for how its letters are composed"
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_NONE: Final[Mapping[str, str]] = {}
_LONG_AGO: Final = 2.0
"""Seconds after which no clock of a disk is so coarse that a change could bear the same time."""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    name: str
    """As it is spelled on this disk, which may compose letters otherwise than the server."""
    digest: str


@dataclass(slots=True)
class ScanResult:
    files: dict[str, ScannedFile] = field(default_factory=dict)
    """By the path that each has on the server."""
    problems: dict[str, str] = field(default_factory=dict)
    """What cannot be synced, by path, and why."""
    unsettled: set[str] = field(default_factory=set)
    """Paths that somebody is writing or has just removed: nothing can be said of them yet."""
    copies: set[str] = field(default_factory=set)
    """Of those that were asked for, those that are there."""

    def tells_of(self, path: str) -> bool:
        """Whether it is known what is at a path, or that nothing is."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        return path not in self.unsettled and not any(each in self.problems for each in above)


@dataclass(frozen=True, slots=True)
class _Read:
    mark: Mark
    digest: str | None
    problem: str = ""
    sure: bool = True
    """Whether its mark is old enough to tell the next change by."""


class FileChangedWhileRead(Exception):
    """It was written to while it was read."""


class DirectoryScanner:
    """Looks at a directory again and again, and remembers what need not be read twice."""

    def __init__(
        self,
        folder: SyncedDirectory,
        settle: float,
        *,
        elapsed: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._settle = folder, settle
        self._elapsed, self._now = elapsed, now
        self._read: dict[str, _Read] = {}
        self._since: dict[str, tuple[Mark | None, float]] = {}
        """What was last seen at a path that had just changed, and since when it is so."""
        self._waiting: set[str] = set()

    def look(self, known: Collection[str], copies: Mapping[str, str] = _NONE) -> ScanResult:
        """``known`` are the paths whose absence would mean something, ``copies`` those that lie
        beside some of them."""
        found, seen = ScanResult(), set()
        for name, room, last, problem in self._names():
            path = unicodedata.normalize("NFC", name)
            twice = path in seen
            seen.add(path)
            if reason := problem or _path_problem(path) or (_TWICE if twice else ""):
                found.problems[shown(path)] = reason
            else:
                self._look_at(found, path, name, room, last)
        for path in known:
            if path not in seen and found.tells_of(path) and not self._settled(path, None):
                found.unsettled.add(path)
        for path, copy in copies.items():
            if self._folder.digest(copy) is not None:
                found.copies.add(copy)
            elif not self._settled(copy, None):
                found.unsettled.add(path)
        self._since = {path: self._since[path] for path in self._waiting}
        self._waiting = set()
        return found

    def _names(self) -> Iterator[tuple[str, int, str, str]]:
        """Every name, the directory that it is in, its last part, and what is wrong with it."""
        for at, below, files, room in os.fwalk(".", dir_fd=self._folder.fd, onerror=_failed):
            above = "" if at == "." else at.removeprefix("./") + "/"
            for name in [*below]:
                if is_ignored(name):
                    below.remove(name)
                elif problem := _directory_problem(room, name):
                    below.remove(name)
                    yield above + name, room, name, problem
            for name in sorted(files):
                if not is_ignored(name):
                    yield above + name, room, name, ""

    def _look_at(self, found: ScanResult, path: str, name: str, room: int, last: str) -> None:
        try:
            read = self._contents(path, room, last)
        except (FileChangedWhileRead, FileNotFoundError):
            found.unsettled.add(path)
            self._since.setdefault(path, (None, self._elapsed()))
            self._waiting.add(path)
            return
        except OSError as problem:
            link = problem.errno == errno.ELOOP
            reason = "it is a link" if link else f"it cannot be read: {problem.strerror}"
            found.problems[path] = reason
            return
        if not self._settled(path, read.mark):
            found.unsettled.add(path)
        elif read.digest is None:
            found.problems[path] = read.problem
        else:
            found.files[path] = ScannedFile(name, read.digest)

    def _contents(self, path: str, room: int, last: str) -> _Read:
        """Raises OSError, or Unstable."""
        mark, mode = _marked(os.stat(last, dir_fd=room, follow_symlinks=False))
        known = self._read.get(path)
        if known is not None and known.sure and known.mark == mark:
            return known
        if not stat.S_ISREG(mode):
            problem = "it is a link" if stat.S_ISLNK(mode) else "it is not a regular file"
            return _Read(mark, None, problem, sure=False)
        fd = os.open(last, _READ, dir_fd=room)
        try:
            read = _read(fd, self._now())
        finally:
            os.close(fd)
        self._read[path] = read
        return read

    def _settled(self, path: str, mark: Mark | None) -> bool:
        """Whether it has been left alone for long enough: as its times say, or as was seen."""
        if mark is not None and self._settle < _age(mark, self._now()):
            return True
        now = self._elapsed()
        seen, since = self._since.get(path, (mark, now))
        if seen != mark:
            since = now
        if now - since >= self._settle:
            return True
        self._since[path] = (mark, since)
        self._waiting.add(path)
        return False


def shown(path: str) -> str:
    """A name as it can be printed, whatever bytes it is made of. What is a path stays as it is."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _failed(problem: OSError) -> None:
    """What is gone is gone; what cannot be looked into must not be taken for gone."""
    if not isinstance(problem, FileNotFoundError):
        raise problem


def _directory_problem(room: int, name: str) -> str:
    try:
        os.close(os.open(name, _DIRECTORY, dir_fd=room))
    except FileNotFoundError:
        return ""
    except NotADirectoryError:
        return "it is a link"
    except OSError as problem:
        return f"it cannot be read: {problem.strerror}"
    return ""


def _marked(info: os.stat_result) -> tuple[Mark, int]:
    mark = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    return mark, info.st_mode


def _age(mark: Mark, now: float) -> float:
    return now - max(mark[3:]) / 1e9


def _read(fd: int, now: float) -> _Read:
    mark, mode = _marked(os.fstat(fd))
    if not stat.S_ISREG(mode):
        return _Read(mark, None, "it is not a regular file", sure=False)
    if mark[2] > LARGEST:
        return _Read(mark, None, f"it has {mark[2]} bytes; a file may have {LARGEST}")
    with os.fdopen(fd, "rb", closefd=False) as file:
        content = file.read(LARGEST + 1)
    if _marked(os.fstat(fd))[0] != mark:
        raise FileChangedWhileRead
    problem = _text_problem(content)
    sure = _age(mark, now) > _LONG_AGO
    return _Read(mark, None if problem else digest_of(content), problem, sure)


def _text_problem(content: bytes) -> str:
    if b"\0" in content:
        return "it is not text"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return ""


def _path_problem(path: str) -> str:
    try:
        Path(path)
    except ValidationError as problem:
        return str(problem)
    return ""
