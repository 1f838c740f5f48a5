"""Collects command output up to a byte limit."""

from __future__ import annotations

from typing import Final

TRUNCATION_MARK: Final = b"\n[output truncated]"


class BoundedOutput:
    """Output sink that keeps at most `max_bytes` and drops the rest."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._content = bytearray()
        self.is_truncated = False

    def __call__(self, chunk: bytes) -> None:
        remaining = self._max_bytes - len(self._content)
        self._content += chunk[:remaining]
        self.is_truncated = self.is_truncated or len(chunk) > remaining

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    @property
    def marked_content(self) -> bytes:
        """The content; if truncated, cut between characters and followed by a mark."""
        if not self.is_truncated:
            return bytes(self._content)
        max_content = max(0, self._max_bytes - len(TRUNCATION_MARK))
        return (trim_partial_character(bytes(self._content[:max_content])) + TRUNCATION_MARK)[
            : self._max_bytes
        ]


def trim_partial_character(text: bytes) -> bytes:
    """Drop an incomplete UTF-8 character from the end of `text`."""
    for offset in range(1, min(4, len(text)) + 1):
        lead = text[-offset]
        if lead & 0xC0 != 0x80:
            needed = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
            return text[:-offset] if needed > offset else text
    return text
