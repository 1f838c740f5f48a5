"""Parsing and validation of resolver arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec.json import encode

from carrel.core.errors import ValidationError
from carrel.core.identifiers import MAX_PREFIX_LENGTH, Digest, normalize_prefix

_CURSOR: Final = re.compile(r"[A-Za-z0-9._-]{0,128}")
_DIGEST: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_CAPITAL_LETTER: Final = re.compile(r"([A-Z])")
_SNAKE_CASE_LETTER: Final = re.compile(r"_([a-z0-9])")
_MAX_REASON_LENGTH: Final = 500
_MAX_CONFIG_FIELDS: Final = 64
_MAX_CONFIG_BYTES: Final = 2**20
_MAX_NUMBER: Final = 2**53

ArgumentMap = Mapping[str, Any]


def parse_cursor(text: str) -> str:
    if not _CURSOR.fullmatch(text):
        raise ValidationError("invalid cursor")
    return text


def parse_prefix(text: str) -> str:
    if len(text) > MAX_PREFIX_LENGTH or "\0" in text:
        raise ValidationError(f"prefix must have at most {MAX_PREFIX_LENGTH} characters")
    return normalize_prefix(text)


def parse_reason(text: str) -> str:
    if len(text) > _MAX_REASON_LENGTH or not text.isprintable():
        raise ValidationError(f"reason must be one line of at most {_MAX_REASON_LENGTH} characters")
    return text


def parse_reviewed_digest(text: str | None) -> Digest:
    """Parse the digest of the reviewed content. Raises ValidationError if absent."""
    if text is None:
        raise ValidationError("latestSha is required: the digest that was reviewed")
    return parse_digest_argument("latestSha", text)


def parse_digest_argument(name: str, text: str) -> Digest:
    """Parse a digest. Raises ValidationError, which names the argument."""
    match = _DIGEST.fullmatch(text)
    if match is None:
        raise ValidationError(f"{name} must be 64 hex digits, optionally prefixed by sha256:")
    return Digest(f"sha256:{match[1]}")


def to_snake_case(name: str, *_: Any) -> str:
    """Python attribute name of a schema field."""
    return _CAPITAL_LETTER.sub(r"_\1", name).lower()


def to_camel_case_keys(value: Any) -> Any:
    """Copy of a value with its keys in the schema's camelCase."""
    if isinstance(value, dict):
        return {
            _SNAKE_CASE_LETTER.sub(lambda m: m[1].upper(), name): to_camel_case_keys(v)
            for name, v in value.items()
        }
    return [to_camel_case_keys(item) for item in value] if isinstance(value, list) else value


def require_not_null(arguments: ArgumentMap, names: Collection[str]) -> ArgumentMap:
    """Return the arguments if none of `names` is null. Raises ValidationError."""
    for name in names:
        if name in arguments and arguments[name] is None:
            raise ValidationError(f"{name} must not be null")
    return arguments


def parse_config(value: Any) -> dict[str, Any]:
    """Validate a config object. Raises ValidationError."""
    if not isinstance(value, dict) or len(value) > _MAX_CONFIG_FIELDS:
        raise ValidationError(f"config must be an object of at most {_MAX_CONFIG_FIELDS} fields")
    if not _is_storable(value, 16):
        raise ValidationError("config has a number that is too large, or is nested too deeply")
    if len(encode(value)) > _MAX_CONFIG_BYTES:
        raise ValidationError(f"config must have at most {_MAX_CONFIG_BYTES} bytes")
    return value


def _is_storable(value: Any, levels: int) -> bool:
    if isinstance(value, dict | list):
        children = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_is_storable(item, levels - 1) for item in children)
    if isinstance(value, int | float):
        return abs(value) <= _MAX_NUMBER
    return value is None or isinstance(value, str)
