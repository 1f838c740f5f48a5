"""What must be so of a value that somebody gave, in the words that clients of accounts know."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from carrel.core.errors import ValidationError
from carrel.core.text_validation import LONGEST_LINE

LONGEST_DESCRIPTION: Final = 1000
_DEEPEST: Final = 16


def boolean(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValidationError(f"{what} must be a boolean")
    return value


def mapping(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValidationError(f"{what} must be an object")
    return value


def one_of(what: str, value: object, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValidationError(f"{what} must be one of: {', '.join(choices)}")
    return value


def whole(what: str, value: object, most: int) -> int:
    """To JSON 30.0 is an integer too."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValidationError(f"{what} must be a positive integer")
    if value > most:
        raise ValidationError(f"{what} must be an integer from 1 to {most}")
    return value


def texts(what: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValidationError(f"{what} must be an array of non-empty strings")
    trimmed = [each.strip() for each in value]
    if not all(trimmed):
        raise ValidationError(f"{what} must be an array of non-empty strings")
    return trimmed


def text(what: str, value: object) -> str:
    """Trimmed."""
    if not isinstance(value, str) or not value.strip():
        raise ValidationError(f"{what} must be a non-empty string")
    return value.strip()


def name(value: object) -> str:
    """What a record is called."""
    trimmed = text("name", value)
    if len(trimmed) > LONGEST_LINE:
        raise ValidationError(f"name must be a string of at most {LONGEST_LINE} characters")
    return trimmed


def description(value: object) -> str | None:
    """What a record is for; None and nothing but blanks say nothing."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > LONGEST_DESCRIPTION:
        most = LONGEST_DESCRIPTION
        raise ValidationError(f"description must be a string of at most {most} characters")
    return value.strip() or None


def shallow(what: str, value: object) -> None:
    """That nobody who walks through it gets lost. Raises Malformed."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return
    raise ValidationError(f"{what} is nested too deeply")


def _within(value: object) -> Collection[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def merged(stored: object, patch: object) -> Any:
    """A JSON merge-patch: objects are merged, null takes away, and all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(stored) if isinstance(stored, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
