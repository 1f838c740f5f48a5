"""Bytes to upload, and targets of a download.

A source is read in parts, and from its start again when a request is retried. A target is a new
file that replaces the old one, or an open file.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final, TypeAlias

from carrel_client.errors import ValidationError

Source: TypeAlias = "bytes | str | os.PathLike[str] | IO[bytes] | FileSource"
"""Bytes, the path of a file, or a binary file that is read from its position."""

PART_BYTES: Final = 2**20
_MEMORY_BYTES: Final = 2**20
"""Bytes of a stream that are held in memory before a temporary file is used."""


@dataclass(slots=True)
class FileSource:
    """The bytes of an open file from a position on, with their digest."""

    file: IO[bytes]
    start: int
    size: int
    sha256: bytes
    is_owned: bool
    """Whether the file was opened for this source."""

    def parts(self) -> Iterator[bytes]:
        """Read the bytes from the start. Blocks."""
        self.file.seek(self.start)
        remaining = self.size
        while remaining and (part := self.file.read(min(PART_BYTES, remaining))):
            remaining -= len(part)
            yield part

    def close(self) -> None:
        if self.is_owned:
            self.file.close()


def open_source(source: Source) -> FileSource:
    """Open and hash what is to be uploaded. Blocks. Raises OSError and ValidationError.

    A stream without positions, such as a pipe, is copied to a temporary file first.
    """
    if isinstance(source, FileSource):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return _hash_file(io.BytesIO(source), is_owned=True)
    if isinstance(source, str | os.PathLike):
        return _hash_file(open(source, "rb"), is_owned=True)
    if not hasattr(source, "read") or isinstance(source, io.TextIOBase):
        raise ValidationError("a source is bytes, a path or a binary file")
    if source.seekable():
        return _hash_file(source, is_owned=False)
    return _hash_file(_copy(source), is_owned=True)


def _hash_file(file: IO[bytes], *, is_owned: bool) -> FileSource:
    start, hasher, size = file.tell(), hashlib.sha256(), 0
    try:
        while part := file.read(PART_BYTES):
            hasher.update(part)
            size += len(part)
    except BaseException:
        if is_owned:
            file.close()
        raise
    return FileSource(file, start, size, hasher.digest(), is_owned)


def _copy(stream: IO[bytes]) -> IO[bytes]:
    file = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 - closed by the source
    while part := stream.read(PART_BYTES):
        file.write(part)
    file.seek(0)
    return file


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
