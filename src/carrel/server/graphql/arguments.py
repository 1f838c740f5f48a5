"""What callers give, checked: cursors, digests, reasons and objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec.json import encode

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest

_CURSOR: Final = re.compile(r"[A-Za-z0-9._-]{0,128}")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_DIGEST: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_CAPITAL: Final = re.compile(r"([A-Z])")
_WORD: Final = re.compile(r"_([a-z0-9])")
_LONGEST_REASON: Final = 500
_LONGEST_PREFIX: Final = 256
_MOST_FIELDS: Final = 64
_LARGEST_CONFIG: Final = 2**20
_WIDEST: Final = 2**53

Given = Mapping[str, Any]


def cursor_of(text: str) -> str:
    if not _CURSOR.fullmatch(text):
        raise ValidationError("after must be the next of the page before")
    return text


def number_of(text: str) -> int:
    """A cursor that is a number, 0 where there is none."""
    if text and not _NUMBER.fullmatch(text):
        raise ValidationError("after must be the next of the page before")
    return int(text or 0)


def prefix_of(text: str) -> str:
    if len(text) > _LONGEST_PREFIX or "\0" in text:
        raise ValidationError(f"prefix is at most {_LONGEST_PREFIX} characters")
    return text


def reason_of(text: str) -> str:
    if len(text) > _LONGEST_REASON or not text.isprintable():
        raise ValidationError(f"reason is one line of at most {_LONGEST_REASON} characters")
    return text


def reviewed_of(text: str | None) -> Digest:
    """The digest of what was reviewed: nobody accepts what they do not name."""
    if text is None:
        raise ValidationError("latestSha is missing: an accept names the digest that was reviewed")
    found = _DIGEST.fullmatch(text)
    if found is None:
        raise ValidationError("latestSha is sha256: and 64 hex digits, or these alone")
    return Digest(f"sha256:{found[1]}")


def inside(name: str, *_: Any) -> str:
    """The name that a field of the schema has in code."""
    return _CAPITAL.sub(r"_\1", name).lower()


def outside(value: Any) -> Any:
    """The same with the names of its fields as they stand in the schema."""
    if isinstance(value, dict):
        return {_WORD.sub(lambda m: m[1].upper(), name): outside(v) for name, v in value.items()}
    return [outside(one) for one in value] if isinstance(value, list) else value


def require_arguments(given: Given, names: Collection[str]) -> Given:
    """The same, where none of these is null. Raises Malformed."""
    for name in names:
        if name in given and given[name] is None:
            raise ValidationError(f"{name} may be left out, but not null")
    return given


def config_of(value: Any) -> dict[str, Any]:
    """An object that can be stored and shown anywhere. Raises Malformed."""
    if not isinstance(value, dict) or len(value) > _MOST_FIELDS:
        raise ValidationError(f"config is an object of at most {_MOST_FIELDS} fields")
    if not _plain(value, 16):
        raise ValidationError("config holds a number that is too wide, or is nested too deeply")
    if len(encode(value)) > _LARGEST_CONFIG:
        raise ValidationError(f"config has at most {_LARGEST_CONFIG} bytes")
    return value


def _plain(value: Any, levels: int) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_plain(one, levels - 1) for one in inner)
    if isinstance(value, int | float):
        return abs(value) <= _WIDEST
    return value is None or isinstance(value, str)
