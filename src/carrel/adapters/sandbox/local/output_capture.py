"""Captures command output: the first bytes are kept, the rest is discarded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

TRUNCATION_MARK: Final = b"\n[output truncated]"
MAX_PRINTED_BYTES: Final = 64 * 2**20
_CHUNK_BYTES: Final = 256 * 1024


class CapturedOutput:
    """One stream, read from a pipe that it owns."""

    def __init__(self, fd: int, max_bytes: int, on_flood: Callable[[], None]) -> None:
        self._fd, self._max_bytes, self._on_flood = fd, max_bytes, on_flood
        self._content = bytearray()
        self._total_bytes = 0
        self.ended = asyncio.Event()
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return
        before, self._total_bytes = self._total_bytes, self._total_bytes + len(chunk)
        self._append(chunk)
        if before <= MAX_PRINTED_BYTES < self._total_bytes:
            self._on_flood()

    def _append(self, chunk: bytes) -> None:
        if len(self._content) <= self._max_bytes:
            self._content += chunk[: self._max_bytes + 1 - len(self._content)]

    def drain(self) -> None:
        """Read what is available and close; other processes may keep the pipe open."""
        while not self.ended.is_set():
            before = self._total_bytes
            self._read()
            if self._total_bytes == before:
                self.close()

    def close(self) -> None:
        if not self.ended.is_set():
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self.ended.set()

    @property
    def text(self) -> bytes:
        return truncate_output(bytes(self._content), self._max_bytes)


class OutputTail(CapturedOutput):
    """The last bytes of one stream, or of several that share a buffer."""

    def __init__(self, fd: int, max_bytes: int, shared: bytearray) -> None:
        super().__init__(fd, max_bytes, lambda: None)
        self._content = shared

    def _append(self, chunk: bytes) -> None:
        self._content += chunk
        del self._content[: -self._max_bytes]


def truncate_output(text: bytes, max_bytes: int) -> bytes:
    """Cut to `max_bytes` between characters, including a truncation mark."""
    if len(text) <= max_bytes:
        return text
    content_bytes = max_bytes - len(TRUNCATION_MARK)
    if content_bytes < 0:
        return utf8_prefix(text, max_bytes)
    return utf8_prefix(text, content_bytes) + TRUNCATION_MARK


def utf8_prefix(text: bytes, size: int) -> bytes:
    """Return at most `size` bytes without a partial UTF-8 character at the end."""
    for offset in range(1, min(4, size) + 1):
        byte = text[size - offset]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return text[: size - offset] if length > offset else text[:size]
    return text[:size]
