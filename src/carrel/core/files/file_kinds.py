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

_EXECUTABLE_SUFFIX: Final = "; executable"
_DETECTED_TYPES: Final = frozenset({MARKDOWN, PLAIN_TEXT_TYPE, BINARY_TYPE, LINK_TYPE})


def file_kind(type: str) -> str:
    if type == LINK_TYPE:
        return LINK
    return EXECUTABLE if type.endswith(_EXECUTABLE_SUFFIX) else FILE


def content_type(type: str) -> str:
    """Media type without the executable suffix."""
    return type.removesuffix(_EXECUTABLE_SUFFIX)


def entry_type(kind: str, path: Path, content: bytes, current_type: str | None = None) -> str:
    """Media type of an entry of this kind; a declared type is kept."""
    if kind == LINK:
        return LINK_TYPE
    declared = None if current_type is None else content_type(current_type)
    result = (
        _detect_type(path, content) if declared is None or declared in _DETECTED_TYPES else declared
    )
    return result + _EXECUTABLE_SUFFIX if kind == EXECUTABLE else result


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:BINARY_CHECK_BYTES]


def _detect_type(path: Path, content: bytes) -> str:
    if is_binary(content):
        return BINARY_TYPE
    try:
        content.decode()
    except UnicodeDecodeError:
        return BINARY_TYPE
    return MARKDOWN if path.name.lower().endswith(".md") else PLAIN_TEXT_TYPE
