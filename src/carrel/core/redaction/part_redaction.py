"""Redaction of a content that is too large to hold, in parts.

The content is cut at line ends outside secrets, so the parts are redacted as the whole would be.
Secrets of up to OVERLAP_BYTES are found wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carrel.core.redaction.redactor import RedactionResult, Redactor

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
        self._redactor, self._window_bytes, self._overlap = redactor, window_bytes, overlap_bytes
        self._window = b""
        self._replaced: set[str] = set()
        self._warned: set[str] = set()

    @property
    def replaced(self) -> tuple[str, ...]:
        """Secret ids and pattern names that were replaced, sorted."""
        return tuple(sorted(self._replaced))

    @property
    def warned(self) -> tuple[str, ...]:
        """Pattern names that were found and left in place, sorted."""
        return tuple(sorted(self._warned))

    @property
    def pending(self) -> bytes:
        """What was fed and not yet returned."""
        return self._window

    def redact(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the content without secrets, in parts of about 1 MiB."""
        for part in parts:
            redacted = self.feed(part)
            if redacted:
                yield redacted
        yield self.finish()

    def feed(self, part: bytes) -> bytes:
        """Add a part; return what can be stored, empty if more is needed to decide."""
        window = self._window + part
        self._window = window
        if len(window) < self._window_bytes:
            return b""
        boundary = _last_boundary(window, self._overlap)
        cut, has_secrets = self._redactor.find_cut(window, boundary)
        if not cut and len(window) < _MAX_WINDOWS * self._window_bytes:
            return b""
        cut = cut or boundary
        if not has_secrets:
            self._warned.update(self._redactor.find_warnings(window))
            self._window = window[cut:]
            return window[:cut]
        result = self._redact(window[:cut])
        emitted = len(result.content)
        if result.replaced:  # a replacement can form another value with what follows
            emitted = _last_boundary(result.content, self._overlap)
        self._window = result.content[emitted:] + window[cut:]
        return result.content[:emitted]

    def finish(self) -> bytes:
        """Return the rest of the content, which ends here."""
        window, self._window = self._window, b""
        return self._redact(window).content

    def _redact(self, content: bytes) -> RedactionResult:
        result = self._redactor.redact(content)
        self._replaced.update(result.replaced)
        self._warned.update(result.warned)
        return result


def _last_boundary(content: bytes, remaining: int) -> int:
    """Position after the last boundary that leaves at least ``remaining`` bytes."""
    end = max(0, len(content) - remaining)
    return max(content.rfind(boundary, 0, end) + 1 for boundary in _BOUNDARIES) or end
