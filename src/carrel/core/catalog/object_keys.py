"""Validation of object store keys: slash-separated, without `.` or `..` segments."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from carrel.core.errors import ValidationError


def parse_segments(key: str) -> tuple[str, ...]:
    """Split a key at its slashes.

    Raises ValidationError if a segment could leave the prefix.
    """
    parts = tuple(key.split("/"))
    if any(part in {"", ".", ".."} or not _is_plain_segment(part) for part in parts):
        raise ValidationError(f"{key!a} is not a valid object key")
    return parts


def _is_plain_segment(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return "\\" not in part and not any(
        unicodedata.category(character) == "Cc" for character in part
    )


def nested_keys(keys: Iterable[str]) -> frozenset[str]:
    """Keys below another key, which a directory-backed store cannot hold."""
    all_keys = frozenset(keys)
    return frozenset(
        key for key in all_keys if any(parent in all_keys for parent in _parent_keys(key))
    )


def _parent_keys(key: str) -> Iterable[str]:
    slash = key.find("/")
    while slash >= 0:
        yield key[:slash]
        slash = key.find("/", slash + 1)
