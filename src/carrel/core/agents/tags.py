"""Tags of agents: short lower-case words that group them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from carrel.core.errors import ValidationError

MAX_TAGS: Final = 20
MAX_TAG_LENGTH: Final = 40
TAG_PATTERN: Final = rf"^[a-z0-9][a-z0-9._:-]{{0,{MAX_TAG_LENGTH - 1}}}$"
"""A JSON Schema pattern; here applied as a full match."""
_TAG_REGEX: Final = re.compile(TAG_PATTERN[1:-1])
TAG_INDEX_PREFIX: Final = "tag:"


def parse_tag(text: object) -> str:
    """Return a valid tag. Raises ValidationError, without the text in the message."""
    if not isinstance(text, str) or not _TAG_REGEX.fullmatch(text):
        raise ValidationError(
            f"a tag must be 1 to {MAX_TAG_LENGTH} of a-z, 0-9, . _ : and -, first a letter or digit"
        )
    return text


def parse_tags(texts: Sequence[object]) -> tuple[str, ...]:
    """Return valid tags, each once, in alphabetical order. Raises ValidationError."""
    tags = sorted({parse_tag(text) for text in texts})
    if len(tags) > MAX_TAGS:
        raise ValidationError(f"an agent has at most {MAX_TAGS} tags")
    return tuple(tags)


def by_tag_index(tag: str) -> str:
    """Index key of agents with a tag."""
    return TAG_INDEX_PREFIX + tag
