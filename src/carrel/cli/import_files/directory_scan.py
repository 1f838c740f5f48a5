"""The files of a directory: no link is followed, and what could not be a file there is told."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.files.directory_sync import is_ignored
from carrel.core.identifiers import Path

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LINK: Final = "it is a link"
_TWICE: Final = "another name here is the same but for how its letters are composed"


@dataclass(slots=True)
class LocalFiles:
    """What a directory holds."""

    root: str
    files: dict[str, str] = field(default_factory=dict)
    """The digest of each, by its path."""
    names: dict[str, str] = field(default_factory=dict)
    """How each is spelled on this disk, which may compose letters otherwise."""
    problems: dict[str, str] = field(default_factory=dict)
    """What cannot be imported, and why."""
    passed_over: list[str] = field(default_factory=list)
    """Hidden files, and those that editors leave."""

    def read(self, path: str) -> bytes:
        """The bytes that were looked at. Raises OSError where they are there no more."""
        content = _content(os.path.join(self.root, self.names[path]), None)
        if digest_of(content) != self.files[path]:
            raise OSError(errno.EBUSY, "it was changed while it was imported")
        return content


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


def scan_directory(root: str) -> LocalFiles:
    """Raises OSError where the directory itself cannot be read."""
    found = LocalFiles(root)
    for name, room in _names(found):
        path = unicodedata.normalize("NFC", name)
        if reason := _problem(path) or (_TWICE if path in found.files else ""):
            found.problems[_shown(path)] = reason
            continue
        try:
            content = _content(os.path.basename(name), room)
            content.decode()
        except UnicodeDecodeError:
            found.problems[path] = "it is not UTF-8"
        except OSError as problem:
            link = problem.errno == errno.ELOOP
            found.problems[path] = _LINK if link else problem.strerror or str(problem)
        else:
            found.files[path] = digest_of(content)
            found.names[path] = name
    return found


def _names(found: LocalFiles) -> Iterator[tuple[str, int]]:
    """Every file, and the directory that it is in by its descriptor."""
    for at, below, files, room in os.fwalk(found.root, onerror=_raised):
        above = os.path.relpath(at, found.root)
        above = "" if above == "." else f"{above}/"
        for name in sorted(below):
            if is_ignored(name):
                below.remove(name)
                found.passed_over.append(f"{above}{_shown(name)}/")
            elif stat.S_ISLNK(os.stat(name, dir_fd=room, follow_symlinks=False).st_mode):
                below.remove(name)
                found.problems[_shown(above + name)] = _LINK
        for name in sorted(files):
            if is_ignored(name):
                found.passed_over.append(above + _shown(name))
            else:
                yield above + name, room


def _raised(problem: OSError) -> None:
    """What cannot be looked into must not be taken for empty."""
    raise problem


def _content(name: str, room: int | None) -> bytes:
    """Raises OSError for a link, and for what is no regular file."""
    fd = os.open(name, _READ, dir_fd=room)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()


def _problem(path: str) -> str:
    try:
        Path(path)
    except ValidationError as problem:
        return str(problem)
    return ""


def _shown(path: str) -> str:
    """A name as it can be printed, whatever bytes it is made of."""
    return path.encode("utf-8", "backslashreplace").decode()
