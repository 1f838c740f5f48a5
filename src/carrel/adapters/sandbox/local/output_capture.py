"""What a command prints: the first of it kept, the rest read and forgotten."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

MARK: Final = b"\n[output truncated]"
FLOOD: Final = 64 * 2**20
_CHUNK: Final = 256 * 1024


class CapturedOutput:
    """One stream, from a pipe that is ours from now on."""

    def __init__(self, fd: int, most: int, flooded: Callable[[], None]) -> None:
        self._fd, self._most, self._flooded = fd, most, flooded
        self._kept = bytearray()
        self._seen = 0
        self.ended = asyncio.Event()
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            chunk = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return
        before, self._seen = self._seen, self._seen + len(chunk)
        self._keep(chunk)
        if before <= FLOOD < self._seen:
            self._flooded()

    def _keep(self, chunk: bytes) -> None:
        if len(self._kept) <= self._most:
            self._kept += chunk[: self._most + 1 - len(self._kept)]

    def drain(self) -> None:
        """Read what is there by now, and wait for no more: somebody else may hold the other end."""
        while not self.ended.is_set():
            before = self._seen
            self._read()
            if self._seen == before:
                self.close()

    def close(self) -> None:
        if not self.ended.is_set():
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self.ended.set()

    @property
    def text(self) -> bytes:
        return bounded(bytes(self._kept), self._most)


class OutputTail(CapturedOutput):
    """The last of a stream, or of several that share what they keep."""

    def __init__(self, fd: int, most: int, shared: bytearray) -> None:
        super().__init__(fd, most, lambda: None)
        self._kept = shared

    def _keep(self, chunk: bytes) -> None:
        self._kept += chunk
        del self._kept[: -self._most]


def bounded(text: bytes, most: int) -> bytes:
    """At most so many bytes, cut between characters, with a mark that counts too."""
    if len(text) <= most:
        return text
    room = most - len(MARK)
    if room < 0:
        return between(text, most)
    return between(text, room) + MARK


def between(text: bytes, size: int) -> bytes:
    """Its beginning of at most this size, without half a character of UTF-8 at its end."""
    for back in range(1, min(4, size) + 1):
        byte = text[size - back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return text[: size - back] if length > back else text[:size]
    return text[:size]
