"""Redaction of a content that is too large to hold, in parts.

The content is cut at line ends outside secrets, so the parts are redacted as the whole would be.
Secrets of up to OVERLAP_BYTES are found wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carrel.core.redaction.redactor import Redactor

WINDOW_BYTES: Final = 2**20
OVERLAP_BYTES: Final = 2**17
"""Bytes at the end of a window that are redacted with the next one."""
_MAX_WINDOWS: Final = 4
"""Windows that are held for a secret that covers them; a longer one is cut."""
_BOUNDARIES: Final = (b"\n", b"\0", b" ")


class PartRedactor:
    """Redacts one content in parts and records what was replaced."""

    def __init__(
        self,
        redactor: Redactor,
        window_bytes: int = WINDOW_BYTES,
        overlap_bytes: int = OVERLAP_BYTES,
    ) -> None:
        self._redactor, self._window, self._overlap = redactor, window_bytes, overlap_bytes
        self._replaced: set[str] = set()

    @property
    def replaced(self) -> tuple[str, ...]:
        """Secret ids and pattern names that were replaced, sorted."""
        return tuple(sorted(self._replaced))

    def redact(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the content without secrets, in parts of about 1 MiB."""
        window = b""
        for part in parts:
            window += part
            if len(window) < self._window:
                continue
            boundary = _last_boundary(window, self._overlap)
            cut, has_secrets = self._redactor.find_cut(window, boundary)
            if not cut and len(window) < _MAX_WINDOWS * self._window:
                continue
            cut = cut or boundary
            if not has_secrets:
                yield window[:cut]
                window = window[cut:]
                continue
            result = self._redactor.redact(window[:cut])
            emitted = len(result.content)
            if result.replaced:  # a replacement can form another value with what follows
                self._replaced.update(result.replaced)
                emitted = _last_boundary(result.content, self._overlap)
            yield result.content[:emitted]
            window = result.content[emitted:] + window[cut:]
        result = self._redactor.redact(window)
        self._replaced.update(result.replaced)
        yield result.content


def _last_boundary(content: bytes, remaining: int) -> int:
    """Position after the last boundary that leaves at least ``remaining`` bytes."""
    end = max(0, len(content) - remaining)
    return max(content.rfind(boundary, 0, end) + 1 for boundary in _BOUNDARIES) or end
