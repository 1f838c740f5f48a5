"""Validation of JSON fields of sandbox and workspace records.

Messages are part of the documented API.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from carrel.core.errors import ValidationError
from carrel.core.text_validation import MAX_LINE_LENGTH

MAX_DESCRIPTION_LENGTH: Final = 1000
_MAX_DEPTH: Final = 16


def require_boolean(field_name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValidationError(f"{field_name} must be a boolean")
    return value


def require_mapping(field_name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValidationError(f"{field_name} must be an object")
    return value


def require_choice(field_name: str, value: object, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValidationError(f"{field_name} must be one of: {', '.join(choices)}")
    return value


def require_positive_integer(field_name: str, value: object, maximum: int) -> int:
    """Accepts 30.0 as an integer, since JSON does not distinguish it from 30."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValidationError(f"{field_name} must be a positive integer")
    if value > maximum:
        raise ValidationError(f"{field_name} must be an integer from 1 to {maximum}")
    return value


def require_strings(field_name: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValidationError(f"{field_name} must be an array of non-empty strings")
    trimmed = [item.strip() for item in value]
    if not all(trimmed):
        raise ValidationError(f"{field_name} must be an array of non-empty strings")
    return trimmed


def require_text(field_name: str, value: object) -> str:
    """Return the string without surrounding blanks."""
    if not isinstance(value, str) or not value.strip():
        raise ValidationError(f"{field_name} must be a non-empty string")
    return value.strip()


def require_name(value: object) -> str:
    """Validate the `name` field of a record."""
    trimmed = require_text("name", value)
    if len(trimmed) > MAX_LINE_LENGTH:
        raise ValidationError(f"name must be a string of at most {MAX_LINE_LENGTH} characters")
    return trimmed


def parse_description(value: object) -> str | None:
    """Return the trimmed description; None if absent or blank."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_DESCRIPTION_LENGTH:
        max_length = MAX_DESCRIPTION_LENGTH
        raise ValidationError(f"description must be a string of at most {max_length} characters")
    return value.strip() or None


def require_shallow(field_name: str, value: object) -> None:
    """Limit nesting to _MAX_DEPTH levels. Raises ValidationError."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for item in level for inner in _children(item)]
        if not level:
            return
    raise ValidationError(f"{field_name} is nested too deeply")


def _children(value: object) -> Collection[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def merge_patch(stored: object, patch: object) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(stored) if isinstance(stored, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
