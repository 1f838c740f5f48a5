"""Entries of paths, and their versions."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import lru_cache

import msgspec
from msgspec import Struct

from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.store.blob import Blob

MARKDOWN = "text/markdown"
OFFERED_REMOVAL = "nothing"
"""What the layers below offer for a path that they no longer have."""
DIRECTORY_TYPE = "inode/directory"
"""Type of a version that is a directory; it has no content."""


class FileAttributes(Struct, frozen=True, gc=False):
    """What a disk keeps of a file or directory beside its content."""

    mode: int | None = None
    """Permission bits; None: those that are usual for its kind."""
    mtime_ns: int | None = None
    """Modification time in nanoseconds since 1970; None: the time of its version."""


class Entry(Struct, frozen=True, gc=False):
    """State of one path in one scope.

    `base` is the content of the layers below when this was written or last reviewed. A pin is an
    entry whose blob equals its base; an update is available when the base differs from the layers
    below.
    """

    blob: Blob
    base: Blob | None = None
    type: str = MARKDOWN
    attributes: FileAttributes | None = None
    """Mode and time given by a command; None for a file that no command wrote."""


class TransferKind(StrEnum):
    MOVE = "move"
    COPY = "copy"


class VersionSource(Struct, frozen=True, gc=False, array_like=True):
    """Version whose file was moved or copied here, in the same scope."""

    kind: TransferKind
    version: int
    path: str


@lru_cache(maxsize=8192)
def new_file_id(scope: Scope, path: Path, version: int) -> str:
    """Id of a file that begins at a version of a path. It stays when the file is moved."""
    facts = (scope.tenant, scope.kind, scope.name, path.text, str(version))
    return "f_" + hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]


class Head(Struct, frozen=True, gc=False):
    """Latest version of a path in a scope.

    `entry` None is a tombstone, or a directory if `directory` is set: no file is there.
    """

    path: Path
    version: int
    """Starts at 1; +1 with every change including tombstones; never reused."""
    revision: int
    """Revision of the scope at which this version was written."""
    at: TimestampMs
    entry: Entry | None
    version_offset: int = 0
    """Versions of lower layers that a stack counts before this one; 0 in a stack of one layer."""
    directory: FileAttributes | None = None
    """Attributes of a directory that exists by itself, even if it is empty."""
    stored_file_id: str | None = None
    """Id of the file; None if it began as version 1 of this path."""
    reviewed: str | None = None
    """Digest of an offered content that a person reviewed and did not take.

    OFFERED_REMOVAL stands for the offer to remove the file: declined for a file, else accepted.
    Empty if the decision was taken back.
    """

    def file_id(self, scope: Scope) -> str:
        """Id of the file, given the scope of this head."""
        return self.stored_file_id or new_file_id(scope, self.path, 1)

    @property
    def stack_version(self) -> int:
        """Version as a stack shows it."""
        return self.version + self.version_offset

    @property
    def is_live(self) -> bool:
        """Whether the path is a file or a directory of its own."""
        return self.entry is not None or self.directory is not None


class Version(Struct, frozen=True, gc=False):
    """One version in a path's history, with its author, reason and run."""

    head: Head
    author: str
    reason: str
    run: str | None = None
    redacted: bool = False
    """Whether its content was replaced by a marker."""
    source: VersionSource | None = None
    """Set if a move or a copy wrote this version."""


def version_key(scope: Scope, head: Head) -> str:
    """Key of a version in its scope: 24 hex digits that sort by revision."""
    facts = (scope.tenant, scope.kind, scope.name, head.path.text, str(head.version))
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    return f"{head.revision:012x}{digest[:12]}"


def revision_of_key(key: str) -> int:
    """Revision at which the version with a key was written."""
    return int(key[:12], 16)


def source_to_text(source: VersionSource | None) -> str | None:
    return None if source is None else msgspec.json.encode(source).decode()


def source_from_text(text: str | None) -> VersionSource | None:
    return None if text is None else msgspec.json.decode(text, type=VersionSource)
