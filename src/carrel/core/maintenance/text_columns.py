"""Columns of a store that hold text of users, beside contents and records.

`rewrite_rows` of the port `Erasure` reads and changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from carrel.core.redaction.text_purge import TextPurge


class TextFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    BYTES = "bytes"
    JSON_BYTES = "json bytes"


TEXT_COLUMNS: Final[Mapping[str, Mapping[str, TextFormat]]] = {
    "version": {"author": TextFormat.TEXT, "reason": TextFormat.TEXT},
    "run": {
        "workflow": TextFormat.TEXT,
        "variables": TextFormat.JSON,
        "reason": TextFormat.TEXT,
    },
    "event": {"payload": TextFormat.JSON},
    "audit": {
        "reason": TextFormat.TEXT,
        "subjects": TextFormat.JSON,
        "key_name": TextFormat.TEXT,
    },
    "delivery": {"body": TextFormat.JSON_BYTES},
    "attempt": {"problem": TextFormat.TEXT},
    "session": {"id": TextFormat.TEXT, "plugin": TextFormat.TEXT},
    "session_entry": {
        "content": TextFormat.BYTES,
        "message": TextFormat.JSON,
        "plugin": TextFormat.TEXT,
        "sender": TextFormat.TEXT,
        "item": TextFormat.JSON,
    },
    "recall": {"query": TextFormat.TEXT},
    "idempotency_key": {
        "endpoint": TextFormat.TEXT,
        "key": TextFormat.TEXT,
        "sealed": TextFormat.TEXT,
    },
}
"""Formats by table and column."""

RowRewrite = Callable[[Sequence[Any]], Sequence[Any] | None]
"""Returns the new values of a row's text columns, or None to delete the row."""


class RowBatch(Struct, frozen=True):
    """Result of one step over a table."""

    position: tuple[Any, ...] | None
    """Key of the last row that was read; None at the end of the table."""
    examined: int
    changed: tuple[tuple[Any, ...], ...]
    """Keys of the rows that were changed or deleted, or would be."""


def purge_row(purge: TextPurge, table: str, values: Sequence[Any]) -> Sequence[Any]:
    """Values of a row's text columns without the text."""
    formats = TEXT_COLUMNS[table].values()
    return [
        None if value is None else _purge_value(purge, text_format, value)
        for value, text_format in zip(values, formats, strict=True)
    ]


def _purge_value(purge: TextPurge, text_format: TextFormat, value: Any) -> Any:
    match text_format:
        case TextFormat.TEXT:
            return purge.replace_text(value)
        case TextFormat.JSON:
            return purge.replace_json(value)
        case TextFormat.BYTES:
            return purge.replace(value)
        case TextFormat.JSON_BYTES:
            return purge.replace_json(value.decode()).encode()
