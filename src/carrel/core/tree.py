"""What is stored, and the one way it changes.

A scope owns a tree: for each path it speaks of, an Entry. Trees change only by a Commit, which
says what it saw (expects) and what it wants (writes, changes); a store applies all of it or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from carrel.core.names import Digest, Moment, Path, Scope
from carrel.core.record import Change, Shelf

MARKDOWN = "text/markdown"


@dataclass(frozen=True, slots=True)
class Blob:
    """Content by name. ``ref`` says where a store keeps it, and only that store reads it."""

    digest: Digest
    size: int
    ref: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one scope says about one path.

    ``base`` is what lay beneath when this was written or last reviewed. Hence a pin is simply an
    entry whose blob equals its base, and an upstream change is any base that no longer holds.
    """

    blob: Blob
    base: Blob | None = None
    type: str = MARKDOWN


@dataclass(frozen=True, slots=True)
class Head:
    """The latest that a scope said about a path; ``entry`` None is a tombstone."""

    path: Path
    version: int
    """From 1, rising by 1 with every change, tombstones included, never reused."""
    revision: int
    """The scope's revision at which this was said."""
    at: Moment
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Version:
    """One line of a path's history: what was said, and by whom, why and in which run."""

    head: Head
    by: str
    why: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    scope: Scope
    revision: int
    """Rises with every commit to this scope, so equal revisions mean equal trees."""
    heads: Mapping[Path, Head]
    """What the reader asked for: live entries, and tombstones only of paths asked for by name."""

    def entry(self, path: Path) -> Entry | None:
        head = self.heads.get(path)
        return head.entry if head else None

    def version(self, path: Path) -> int:
        """The latest version of a path, 0 where nothing was ever said of it."""
        head = self.heads.get(path)
        return head.version if head else 0


@dataclass(frozen=True, slots=True)
class Expect:
    """What a decision saw of one path: its version (0 = never was), or only whether it lives."""

    scope: Scope
    path: Path
    version: int | None = None
    live: bool | None = None

    def holds(self, found: Head | None) -> bool:
        if self.version is not None and self.version != (found.version if found else 0):
            return False
        return self.live is None or self.live == bool(found and found.entry)


@dataclass(frozen=True, slots=True)
class Write:
    scope: Scope
    path: Path
    entry: Entry | None
    """None leaves a tombstone, so that the path is absent here, or inherited again."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much one scope may hold once a commit has been applied to it."""

    scope: Scope
    files: int
    """Refused only when the commit adds a path: what is over a lowered limit can still change."""
    size: int | None = None
    """Bytes of all live files together."""


@dataclass(frozen=True, slots=True)
class ReceiptKey:
    """Names one request that must not be done twice."""

    tenant: str
    endpoint: str
    key: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What was seen and what is wanted, applied whole or not at all in one transaction."""

    writes: tuple[Write, ...]
    by: str
    why: str
    at: Moment
    expects: tuple[Expect, ...] = ()
    shelves: tuple[Shelf, ...] = ()
    """Records the decision rested on: it is refused if a shelf's revision has moved."""
    changes: tuple[Change, ...] = ()
    quotas: tuple[Quota, ...] = ()
    keep: int = 100
    """How many versions of a path stay; one that a kept run can see always stays."""
    run: str | None = None
    """The run that writes; the events stand in its log too."""
    receipt: ReceiptKey | None = None
    """Marked with the outcome in the same transaction, so a repeated request finds it."""


@dataclass(frozen=True, slots=True)
class Applied:
    heads: tuple[Head, ...]
    """What each write became, in order."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Not applied: this expectation no longer held."""

    expected: Expect | Shelf | Change
    found: Head | None = None
    """For an Expect, what is there instead."""
    handle: str | None = None
    """For a Change, the name that another record already has."""


@dataclass(frozen=True, slots=True)
class Full:
    """Not applied: it would have taken a scope over its quota."""

    quota: Quota
    files: int
    size: int
    """What the scope would have held."""


Outcome = Applied | Conflict | Full
