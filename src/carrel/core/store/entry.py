"""Entries of paths, and their versions."""

from __future__ import annotations

from msgspec import Struct

from carrel.core.identifiers import Path, TimestampMs
from carrel.core.store.blob import Blob

MARKDOWN = "text/markdown"


class Entry(Struct, frozen=True, gc=False):
    """State of one path in one scope.

    `base` is the content of the layers below when this was written or last reviewed. A pin is an
    entry whose blob equals its base; an update is available when the base differs from the layers
    below.
    """

    blob: Blob
    base: Blob | None = None
    type: str = MARKDOWN


class Head(Struct, frozen=True, gc=False):
    """Latest version of a path in a scope; `entry` None is a tombstone."""

    path: Path
    version: int
    """Starts at 1; +1 with every change including tombstones; never reused."""
    revision: int
    """Revision of the scope at which this version was written."""
    at: TimestampMs
    entry: Entry | None
    version_offset: int = 0
    """Versions of lower layers that a stack counts before this one; 0 in a stack of one layer."""

    @property
    def stack_version(self) -> int:
        """Version as a stack shows it."""
        return self.version + self.version_offset


class Version(Struct, frozen=True, gc=False):
    """One version in a path's history, with its author, reason and run."""

    head: Head
    author: str
    reason: str
    run: str | None = None
    redacted: bool = False
    """Whether its content was replaced by a marker."""
