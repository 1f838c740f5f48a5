"""Name, description and metadata of memory stores, and their limits."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

from carrel.core.errors import ValidationError

MAX_MEMORIES: Final = 2_000
MAX_NAME_LENGTH: Final = 255
MAX_DESCRIPTION_LENGTH: Final = 1_024
MAX_PAIRS: Final = 16
MAX_KEY_LENGTH: Final = 64
MAX_VALUE_LENGTH: Final = 512


def check_name(name: str) -> str:
    """Raises ValidationError."""
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise ValidationError(f"name must have 1 to {MAX_NAME_LENGTH} characters")
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise ValidationError("name must not contain control characters")
    return name


def check_description(description: str) -> str:
    """Raises ValidationError."""
    if len(description) > MAX_DESCRIPTION_LENGTH:
        raise ValidationError(f"description must have at most {MAX_DESCRIPTION_LENGTH} characters")
    return description


def merge_metadata(stored: Mapping[str, str], patch: Mapping[str, str | None]) -> Mapping[str, str]:
    """Add, replace and, by null, remove pairs. Raises ValidationError."""
    for key, value in patch.items():
        if not 1 <= len(key) <= MAX_KEY_LENGTH:
            raise ValidationError(f"a key of metadata must have 1 to {MAX_KEY_LENGTH} characters")
        if value is not None and len(value) > MAX_VALUE_LENGTH:
            raise ValidationError(
                f"a value of metadata must have at most {MAX_VALUE_LENGTH} characters"
            )
    merged = {key: value for key, value in {**stored, **patch}.items() if value is not None}
    if len(merged) > MAX_PAIRS:
        raise ValidationError(f"metadata may have {MAX_PAIRS} pairs")
    return merged
