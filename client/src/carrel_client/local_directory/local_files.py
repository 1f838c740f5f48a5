"""Files of a directory, read without following links and without waiting."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from typing import Final

from carrel_client.local_directory.path_safety import STATE_FILE

_NO_REGULAR_FILE: Final = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO})
"""The path is absent, a link or a socket."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_regular(path: str) -> bytes | None:
    """Return the bytes of a regular file, or None."""
    try:
        fd = os.open(path, _READ)
    except OSError as error:
        if error.errno in _NO_REGULAR_FILE:
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
    """Whether a directory contains exactly these files and the state file."""
    try:
        return _digests(root, files) == files
    except OSError:
        return False


def _digests(root: str, files: Mapping[str, str]) -> dict[str, str] | None:
    """Return the digests of all files, or None if there is an unexpected entry."""
    directories = {path[:end] for path in files for end, char in enumerate(path) if char == "/"}
    digests: dict[str, str] = {}
    pending = [""]
    while pending:
        parent = pending.pop()
        with os.scandir(os.path.join(root, parent)) as entries:
            for entry in entries:
                path = f"{parent}/{entry.name}" if parent else entry.name
                if entry.is_dir(follow_symlinks=False) and path in directories:
                    pending.append(path)
                elif path in files and (content := read_regular(entry.path)) is not None:
                    digests[path] = digest(content)
                elif path != STATE_FILE:
                    return None
    return digests
