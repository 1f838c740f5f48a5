"""Structured items of transcript entries: content parts, tool calls and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from carrel.core.errors import PayloadTooLarge, ValidationError
from carrel.core.sessions.session import MAX_CONTENT_BYTES

MAX_ITEM_DEPTH: Final = 64
_TEXT_FIELDS: Final = (
    *("name", "text", "content", "parts", "thinking", "summary", "refusal"),
    *("function", "tool_calls", "arguments", "input", "output", "result"),
)
"""Fields of the message formats of model APIs that carry text, in reading order."""
_VALUE_FIELDS: Final = frozenset({"arguments", "input", "output", "result"})
"""Fields whose objects are values of a program; their JSON is the text."""


def encode_item(item: Any) -> str:
    """Return an item as JSON. Raises ValidationError or PayloadTooLarge."""
    try:
        encoded = msgspec.json.encode(item)
        text = encoded.decode()
    except UnicodeError:
        raise ValidationError("item must have valid UTF-8 text") from None
    if len(encoded) > MAX_CONTENT_BYTES:
        raise PayloadTooLarge(f"item must have at most {MAX_CONTENT_BYTES} bytes")
    return text


def check_item_depth(item: Any) -> None:
    """Raise ValidationError if values are nested too deeply."""
    level = [item]
    for _ in range(MAX_ITEM_DEPTH):
        level = [
            child
            for value in level
            if isinstance(value, Mapping | list)
            for child in (value.values() if isinstance(value, Mapping) else value)
        ]
        if not level:
            return
    raise ValidationError(f"item must be nested at most {MAX_ITEM_DEPTH} levels deep")


def item_text(item: Any) -> str:
    """Return the text that an item carries, a line for each part."""
    return "\n".join(filter(None, _texts(item)))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from _texts(part)
        case Mapping():
            for name in _TEXT_FIELDS:
                field = value.get(name)
                if name in _VALUE_FIELDS and isinstance(field, Mapping):
                    yield encode_item(field)
                else:
                    yield from _texts(field)
        case _:
            pass
