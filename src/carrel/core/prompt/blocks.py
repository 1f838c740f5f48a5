"""Blocks of a prompt: the outcome for each file that could be part of it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class BlockStatus(StrEnum):
    INCLUDED = "kept"
    TRUNCATED = "cut"
    OMITTED = "left out"


class PromptBlock(Struct, frozen=True):
    """Result for one file that could be part of the prompt."""

    name: str
    path: str
    status: BlockStatus
    text: str = ""
    """Text in the prompt, with its heading."""
    source: str | None = None
    version: int | None = None
    reason: str = ""
    """Why it was truncated or omitted."""
    is_cacheable: bool = True
    """False if the file could not be loaded and may be available later."""
