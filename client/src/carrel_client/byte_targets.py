"""Targets of a download: a new file that replaces the old one, or an open file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from typing import IO, TypeAlias

Target: TypeAlias = "str | os.PathLike[str] | IO[bytes]"
"""The path of a file, or a binary file that is written from its position."""


class DownloadTarget:
    """Receives the bytes of a file; the target has all of them or is unchanged.

    An open file that has no positions, such as a pipe, gets the bytes as they arrive. All methods
    block.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._file: IO[bytes] | None = None
        self._temporary = ""
        self._start = 0
        self.size = 0
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> bytes:
        return self._hash.digest()

    def write(self, part: bytes) -> None:
        if self._file is None:
            self._open()
        assert self._file is not None
        self._file.write(part)
        self._hash.update(part)
        self.size += len(part)

    def restart(self) -> None:
        """Begin again, since the content has changed. Raises OSError for a pipe."""
        if self._file is not None and self.size:
            self._file.seek(self._start)
            self._file.truncate()
        self.size, self._hash = 0, hashlib.sha256()

    def commit(self) -> None:
        """Put the file into its place."""
        if self._file is None:
            self._open()
        assert self._file is not None
        self._file.flush()
        if isinstance(self._target, str | os.PathLike):
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._temporary, self._target)

    def discard(self) -> None:
        """Remove what was written to a path."""
        if self._file is not None and isinstance(self._target, str | os.PathLike):
            with suppress(OSError):
                self._file.close()
            with suppress(FileNotFoundError):
                os.unlink(self._temporary)

    def _open(self) -> None:
        if not isinstance(self._target, str | os.PathLike):
            self._file = self._target
            self._start = self._file.tell() if self._file.seekable() else 0
            return
        directory, name = os.path.split(os.path.abspath(self._target))
        descriptor, self._temporary = tempfile.mkstemp(prefix=f".{name[:60]}-", dir=directory)
        self._file = os.fdopen(descriptor, "wb")
        os.chmod(self._temporary, _default_mode(self._target))


def _default_mode(path: str | os.PathLike[str]) -> int:
    """Mode of the existing file, or that of a new one."""
    try:
        return os.stat(path).st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
