"""File kinds, encoded in the media type of an entry.

A symbolic link has its own type and its target as content; an executable file has a suffix in its
type.
"""

from __future__ import annotations

from typing import Final

from carrel.core.identifiers import Path
from carrel.core.store.entry import MARKDOWN

FILE: Final = "file"
EXECUTABLE: Final = "executable"
LINK: Final = "link"

LINK_TYPE: Final = "inode/symlink"
PLAIN_TEXT_TYPE: Final = "text/plain"
BINARY_TYPE: Final = "application/octet-stream"
BINARY_CHECK_BYTES: Final = 8192
"""Bytes that are scanned for NUL."""
_PART_BYTES: Final = 2**20
"""Size of parts of a large content; one call over all of it would keep other threads waiting."""

_EXECUTABLE_SUFFIX: Final = "; executable"
_DETECTED_TYPES: Final = frozenset({MARKDOWN, PLAIN_TEXT_TYPE, BINARY_TYPE, LINK_TYPE})


def file_kind(type: str) -> str:
    if type == LINK_TYPE:
        return LINK
    return EXECUTABLE if type.endswith(_EXECUTABLE_SUFFIX) else FILE


def content_type(type: str) -> str:
    """Media type without the executable suffix."""
    return type.removesuffix(_EXECUTABLE_SUFFIX)


def typed_as(kind: str, type: str) -> str:
    """Media type of a file that becomes executable or ceases to be it."""
    return content_type(type) + (_EXECUTABLE_SUFFIX if kind == EXECUTABLE else "")


def entry_type(kind: str, path: Path, content: bytes, current_type: str | None = None) -> str:
    """Media type of an entry of this kind; a declared type is kept."""
    detector = TextDetector()
    for start in range(0, len(content), _PART_BYTES):
        detector.feed(content[start : start + _PART_BYTES])
    return detected_entry_type(kind, path, detector, current_type)


def detected_entry_type(
    kind: str, path: Path, content: TextDetector, current_type: str | None = None
) -> str:
    """Like `entry_type`, for a content that was read in parts."""
    if kind == LINK:
        return LINK_TYPE
    declared = None if current_type is None else content_type(current_type)
    if declared is None or declared in _DETECTED_TYPES:
        declared = _text_type(path) if content.is_text else BINARY_TYPE
    return typed_as(kind, declared)


class TextDetector:
    """Decides whether a content, given in parts, is text: UTF-8 that begins without NUL."""

    def __init__(self) -> None:
        self._rest = b""
        """Start of a character that the next part completes."""
        self._unchecked_bytes = BINARY_CHECK_BYTES
        self._is_text = True

    def feed(self, part: bytes) -> None:
        if not self._is_text:
            return
        self._is_text = b"\0" not in part[: self._unchecked_bytes] and self._decodes(part)
        self._unchecked_bytes = max(0, self._unchecked_bytes - len(part))

    @property
    def is_text(self) -> bool:
        """Whether all parts are text; the content ends here."""
        return self._is_text and not self._rest

    def _decodes(self, part: bytes) -> bool:
        content, self._rest = self._rest + part, b""
        try:
            content.decode()
        except UnicodeDecodeError as problem:
            if problem.reason != "unexpected end of data":
                return False
            self._rest = content[problem.start :]
        return True


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:BINARY_CHECK_BYTES]


def _text_type(path: Path) -> str:
    return MARKDOWN if path.name.lower().endswith(".md") else PLAIN_TEXT_TYPE
