"""Scans a directory for import. Follows no symlinks and reports invalid files."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from io import BufferedReader
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.files.directory_sync import is_ignored
from carrel.core.identifiers import Path

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IS_SYMLINK: Final = "is a symbolic link"
_DUPLICATE_NAME: Final = "another file has the same name in a different Unicode normalization"


@dataclass(slots=True)
class LocalFiles:
    """Files of a scanned directory."""

    root: str
    files: dict[str, str] = field(default_factory=dict)
    """Content digests by path."""
    names: dict[str, str] = field(default_factory=dict)
    """Names on disk by path; their Unicode normalization may differ from the path's."""
    problems: dict[str, str] = field(default_factory=dict)
    """Reasons why files cannot be imported, by path."""
    skipped: list[str] = field(default_factory=list)
    """Hidden files and temporary files of editors."""

    def read(self, path: str) -> bytes:
        """Read the scanned content of a file. Raises OSError if it has changed since."""
        with _open_regular(os.path.join(self.root, self.names[path])) as file:
            content = file.read()
        if digest_of(content) != self.files[path]:
            raise OSError(errno.EBUSY, "the file changed during the import")
        return content


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


def scan_directory(root: str) -> LocalFiles:
    """Scan a directory tree. Raises OSError if a directory cannot be read."""
    result = LocalFiles(root)
    for name, dir_fd in _walk_files(result):
        path = unicodedata.normalize("NFC", name)
        if reason := _path_problem(path) or (_DUPLICATE_NAME if path in result.files else ""):
            result.problems[_printable(path)] = reason
            continue
        try:
            digest = _digest_regular(os.path.basename(name), dir_fd)
        except OSError as problem:
            is_symlink = problem.errno == errno.ELOOP
            result.problems[path] = _IS_SYMLINK if is_symlink else problem.strerror or str(problem)
        else:
            result.files[path] = digest
            result.names[path] = name
    return result


def _walk_files(result: LocalFiles) -> Iterator[tuple[str, int]]:
    """Yield every file with the descriptor of its directory."""
    for directory, subdirectories, files, dir_fd in os.fwalk(result.root, onerror=_raise_error):
        prefix = os.path.relpath(directory, result.root)
        prefix = "" if prefix == "." else f"{prefix}/"
        for name in sorted(subdirectories):
            if is_ignored(name):
                subdirectories.remove(name)
                result.skipped.append(f"{prefix}{_printable(name)}/")
            elif stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
                subdirectories.remove(name)
                result.problems[_printable(prefix + name)] = _IS_SYMLINK
        for name in sorted(files):
            if is_ignored(name):
                result.skipped.append(prefix + _printable(name))
            else:
                yield prefix + name, dir_fd


def _raise_error(problem: OSError) -> None:
    """Error handler of os.fwalk: an unreadable directory must not look empty."""
    raise problem


def _digest_regular(name: str, dir_fd: int) -> str:
    with _open_regular(name, dir_fd) as file:
        return file_digest(file, sha256).hexdigest()


@contextmanager
def _open_regular(name: str, dir_fd: int | None = None) -> Iterator[BufferedReader]:
    """Open a regular file. Raises OSError for symlinks and other kinds of files."""
    fd = os.open(name, _READ, dir_fd=dir_fd)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file")
        yield file


def _path_problem(path: str) -> str:
    try:
        Path(path)
    except ValidationError as problem:
        return str(problem)
    return ""


def _printable(path: str) -> str:
    """Make a file name printable, whatever bytes it consists of."""
    return path.encode("utf-8", "backslashreplace").decode()
