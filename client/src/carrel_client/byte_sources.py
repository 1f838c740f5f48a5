"""Bytes to upload, read in parts and from the start again when a request is retried."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Iterator
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
        return _hashed(io.BytesIO(source), is_owned=True)
    if isinstance(source, str | os.PathLike):
        return _hashed(open(source, "rb"), is_owned=True)
    if not hasattr(source, "read") or isinstance(source, io.TextIOBase):
        raise ValidationError("a source is bytes, a path or a binary file")
    if source.seekable():
        return _hashed(source, is_owned=False)
    return _hashed(_copy(source), is_owned=True)


def _hashed(file: IO[bytes], *, is_owned: bool) -> FileSource:
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
