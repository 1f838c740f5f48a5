"""Keys of objects in a place outside: slashed like paths, longer, and with no way out either."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from carrel.core.errors import ValidationError


def segments(key: str) -> tuple[str, ...]:
    """What stands between a key's slashes. Raises Malformed for one that could lead elsewhere."""
    parts = tuple(key.split("/"))
    if any(part in {"", ".", ".."} or not _plain(part) for part in parts):
        raise ValidationError(f"{key!a} is no key of an object")
    return parts


def _plain(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return "\\" not in part and not any(unicodedata.category(sign) == "Cc" for sign in part)


def beneath_others(keys: Iterable[str]) -> frozenset[str]:
    """Those keys that would lie in a directory where another key already is a file."""
    known = frozenset(keys)
    return frozenset(key for key in known if any(above in known for above in _above(key)))


def _above(key: str) -> Iterable[str]:
    at = key.find("/")
    while at >= 0:
        yield key[:at]
        at = key.find("/", at + 1)
