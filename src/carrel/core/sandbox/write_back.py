"""What the changes of a finished command become, where others have worked in the meantime.

Different paths merge. On the same path the command's is head and the other stays in history, but a
modification beats a deletion; where one has a file and the other a directory, both are kept. Only
what is decided here is ever written, and it is decided again on every conflict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import LONGEST_SEGMENT, Path
from carrel.core.store.tree import (
    Entry,
    Expect,
    Head,
    PathFree,
    Quota,
    QuotaExceeded,
    Tree,
    Write,
    expect_unchanged,
)

MOST_CHANGED: Final = 5000
MOST_NAMED: Final = 20
"""Paths that one message names."""


class CommandChanges(Struct, frozen=True):
    """What a command left behind, beside what it had found."""

    base: Mapping[Path, int]
    """The version of each path that it was given."""
    changed: Mapping[Path, Entry]
    deleted: frozenset[Path]


class ConflictOutcome(StrEnum):
    OVER = "over"
    """The command's is head, and theirs stays in history."""
    SPARED = "spared"
    """What the command deleted is kept, since somebody changed it."""
    ASIDE = "aside"
    """The command's is kept under another name."""


class PathConflict(Struct, frozen=True):
    """Somebody else has been at a path that a command changed."""

    path: Path
    fate: ConflictOutcome
    other: Path
    """The path of what they did."""
    version: int | None = None
    """What they made of it; None for the one that came before ours."""
    place: Path | None = None
    """Where ours is, if not at its path."""


class MergePlan(Struct, frozen=True):
    writes: tuple[Write, ...]
    later: tuple[Write, ...]
    """What finds room only where these writes have taken something away."""
    expects: tuple[Expect, ...]
    rooms: tuple[PathFree, ...]
    later_rooms: tuple[PathFree, ...]
    meetings: tuple[PathConflict, ...]


def short_id(id: str) -> str:
    """A short name for what an id names, which is the same however often it is asked for."""
    return hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()[:8]


def decide(brought: CommandChanges, tree: Tree, mark: str) -> MergePlan:
    """From a fresh listing of the workspace to what is to be written there."""
    removed, spared = _deletions(brought, tree)
    ground = _MergedTree(tree, removed)
    meetings = list(spared)
    puts: dict[Path, Entry] = {}
    for path in sorted(brought.changed):
        entry = brought.changed[path]
        at = ground.in_the_way(path)
        head = tree.heads.get(at or path)
        if at is not None:
            place = _aside(path, at, mark, len(meetings))
            other = head or ground.within(at)
            meetings.append(
                PathConflict(path, ConflictOutcome.ASIDE, other.path, other.version, place)
            )
        else:
            place = path
            if _same(head, entry):
                continue
            if brought.base.get(path, 0) != tree.version(path):
                meetings.append(PathConflict(path, ConflictOutcome.OVER, path))
        if not _same(tree.heads.get(place), entry):
            puts[place] = entry
    return _decision(tree, removed, puts, meetings)


def _deletions(
    brought: CommandChanges, tree: Tree
) -> tuple[frozenset[Path], Sequence[PathConflict]]:
    """What goes, and what somebody has changed since and is spared."""
    live = [path for path in sorted(brought.deleted) if path in tree.heads]
    spared = [path for path in live if tree.version(path) != brought.base.get(path)]
    told = [PathConflict(path, ConflictOutcome.SPARED, path, tree.version(path)) for path in spared]
    return frozenset(live) - frozenset(spared), told


class _MergedTree:
    """What stands in a workspace once a command's deletions are done."""

    def __init__(self, tree: Tree, removed: frozenset[Path]) -> None:
        self._heads = {path: head for path, head in tree.heads.items() if path not in removed}
        self._within: dict[Path, Head] = {}
        for path in sorted(self._heads, reverse=True):
            self._within.update(dict.fromkeys(path.parents, self._heads[path]))

    def in_the_way(self, path: Path) -> Path | None:
        """The name that is a file for one and a directory for the other."""
        if path in self._within:
            return path
        return next((parent for parent in path.parents if parent in self._heads), None)

    def within(self, directory: Path) -> Head:
        return self._within[directory]


def _decision(
    tree: Tree,
    removed: frozenset[Path],
    puts: Mapping[Path, Entry],
    meetings: Sequence[PathConflict],
) -> MergePlan:
    emptied = {parent for path in removed for parent in path.parents}
    later = {
        path for path in puts if path in emptied or not removed.isdisjoint(path.parents)
    } - tree.heads.keys()
    scope = tree.scope
    first = [Write(scope, path, None) for path in sorted(removed)]
    first += [Write(scope, path, entry) for path, entry in puts.items() if path not in later]
    new = [path for path in puts if path not in tree.heads]
    rooms = {path: PathFree(path, (scope,)) for path in new}
    return MergePlan(
        tuple(first),
        tuple(Write(scope, path, puts[path]) for path in puts if path in later),
        tuple(
            expect_unchanged(tree, path) for path in (*sorted(removed), *puts) if path not in later
        ),
        tuple(rooms[path] for path in new if path not in later),
        tuple(rooms[path] for path in new if path in later),
        tuple(meetings),
    )


def exceeds_quota(decision: MergePlan, tree: Tree, quota: Quota) -> QuotaExceeded | None:
    """Whether the workspace would hold too much: for what no single commit can tell."""
    sizes = {path: head.entry.blob.size for path, head in tree.heads.items() if head.entry}
    files, size = len(sizes), sum(sizes.values())
    for write in (*decision.writes, *decision.later):
        sizes.pop(write.path, None)
        if write.entry:
            sizes[write.path] = write.entry.blob.size
    crowded = len(sizes) > max(quota.files, files)
    heavy = quota.size is not None and sum(sizes.values()) > max(quota.size, size)
    return QuotaExceeded(quota, len(sizes), sum(sizes.values())) if crowded or heavy else None


def _same(head: Head | None, entry: Entry) -> bool:
    found = head.entry if head else None
    return found is not None and (found.blob, found.type) == (entry.blob, entry.type)


def _aside(path: Path, at: Path, mark: str, number: int) -> Path:
    """Beside the name that is taken, with all that would have been beneath it."""
    suffix = f".conflict-{mark}"
    before, _, name = at.text.rpartition("/")
    short = name.encode()[: LONGEST_SEGMENT - len(suffix)].decode(errors="ignore")
    named = f"{before}/{short}{suffix}" if before else short + suffix
    try:
        return Path(named + path.text[len(at.text) :])
    except ValidationError:  # It is too long by now.
        return Path(f"conflict-{mark}/{number}")


def warnings(
    meetings: Sequence[PathConflict], whose: Mapping[tuple[Path, int], str]
) -> Iterator[str]:
    """What the caller is told: of each meeting, who it was and what became of both."""
    for one in meetings[:MOST_NAMED]:
        assert one.version is not None
        who = whose.get((one.other, one.version), "somebody")
        theirs = "" if one.other == one.path else f" in {one.other}"
        also = f"also changed by {who} at version {one.version}{theirs}"
        match one.fate:
            case ConflictOutcome.OVER:
                yield f"[warning: {one.path} was {also}, which stays in its history]"
            case ConflictOutcome.SPARED:
                yield f"[warning: {one.path} was not deleted: {also}]"
            case ConflictOutcome.ASIDE:
                yield f"[warning: {one.path} is kept as {one.place}: {also}]"
    if len(meetings) > MOST_NAMED:
        yield f"[warning: so it was with {len(meetings) - MOST_NAMED} other paths]"


def named(paths: Sequence[Path]) -> str:
    """Some paths, for a message."""
    more = len(paths) - MOST_NAMED
    listed = ", ".join(path.text for path in paths[:MOST_NAMED])
    return f"{listed} and {more} more" if more > 0 else listed
