"""Looking at a directory without being led astray: no link is followed, nothing is waited for."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from typing import Final

from carrel.client.path_safety import STATE

_NO_FILE: Final = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO})
"""There is nothing, or a link, or a socket."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_regular(path: str) -> bytes | None:
    """The bytes of a regular file, or None for whatever else is there, or for nothing."""
    try:
        fd = os.open(path, _READ)
    except OSError as problem:
        if problem.errno in _NO_FILE:
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_intact(root: str, files: Mapping[str, str]) -> bool:
    """Whether the directory holds exactly these files, by their digests, and what we noted."""
    try:
        return _found(root, files) == files
    except OSError:
        return False


def _found(root: str, files: Mapping[str, str]) -> dict[str, str] | None:
    """The digests of all files, or None as soon as something is there that should not be."""
    wanted = {path[:end] for path in files for end, each in enumerate(path) if each == "/"}
    found: dict[str, str] = {}
    waiting = [""]
    while waiting:
        at = waiting.pop()
        with os.scandir(os.path.join(root, at)) as entries:
            for entry in entries:
                path = f"{at}/{entry.name}" if at else entry.name
                if entry.is_dir(follow_symlinks=False) and path in wanted:
                    waiting.append(path)
                elif path in files and (content := read_regular(entry.path)) is not None:
                    found[path] = digest(content)
                elif path != STATE:
                    return None
    return found
