"""Which contents one request carries: batches for a commit, and texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

Item = TypeVar("Item")

MAX_FILES: Final = 500
_MAX_BYTES: Final = 4 * 2**20
MAX_TEXT_BYTES: Final = 2**20
"""Larger contents are sent in parts."""


def split_into_batches(items: Iterable[tuple[Item, int]]) -> Iterator[list[Item]]:
    """Split items with their sizes in bytes into batches for one request each."""
    batch: list[Item] = []
    size = 0
    for item, item_size in items:
        if batch and (len(batch) == MAX_FILES or size + item_size > _MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item_size
    if batch:
        yield batch


def is_small_text(content: bytes) -> bool:
    """Whether a content is sent as text; others are sent as bytes."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return len(content) <= MAX_TEXT_BYTES
