"""Merge of a command's file changes with concurrent writes.

Changes of different paths merge. On the same path the command wins and the other version stays in
history, but a modification beats a deletion. If one side has a file and the other a directory, both
are kept. The plan is decided again after every conflict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import MAX_SEGMENT_BYTES, Path
from carrel.core.store.commit import Expect, PathFree, Quota, QuotaExceeded, Write, expect_unchanged
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree

MAX_CHANGED_FILES: Final = 5000
MAX_LISTED_PATHS: Final = 20
"""Paths listed in one message."""


class CommandChanges(Struct, frozen=True):
    """Changes that a command made to its files."""

    base: Mapping[Path, int]
    """Version of each path that the command started with."""
    changed: Mapping[Path, Entry]
    deleted: frozenset[Path]


class ConflictOutcome(StrEnum):
    COMMAND_WINS = "over"
    """The command's version is the head; the concurrent one stays in history."""
    DELETION_SKIPPED = "spared"
    """The command deleted the file, but a concurrent change keeps it."""
    STORED_ASIDE = "aside"
    """The command's version is stored under another name."""


class PathConflict(Struct, frozen=True):
    """Concurrent change of a path that a command changed."""

    path: Path
    outcome: ConflictOutcome
    other_path: Path
    """Path of the concurrent change."""
    version: int | None = None
    """Version of the concurrent change; None: the version before the command's."""
    stored_path: Path | None = None
    """Path of the command's version, if not its own."""


class MergePlan(Struct, frozen=True):
    writes: tuple[Write, ...]
    deferred_writes: tuple[Write, ...]
    """Writes to paths that become free only after `writes` is committed."""
    expects: tuple[Expect, ...]
    path_checks: tuple[PathFree, ...]
    deferred_path_checks: tuple[PathFree, ...]
    conflicts: tuple[PathConflict, ...]


def short_id(id: str) -> str:
    """Short stable hash of an id."""
    return hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()[:8]


def plan_merge(changes: CommandChanges, tree: Tree, label: str) -> MergePlan:
    """Plan the writes from a fresh listing of the workspace."""
    removed, skipped = _plan_deletions(changes, tree)
    merged = _MergedTree(tree, removed)
    conflicts = list(skipped)
    puts: dict[Path, Entry] = {}
    for path in sorted(changes.changed):
        entry = changes.changed[path]
        blocker = merged.blocking_path(path)
        head = tree.heads.get(blocker or path)
        if blocker is not None:
            target = _conflict_path(path, blocker, label, len(conflicts))
            other_head = head or merged.file_below(blocker)
            conflicts.append(
                PathConflict(
                    path, ConflictOutcome.STORED_ASIDE, other_head.path, other_head.version, target
                )
            )
        else:
            target = path
            if _has_same_content(head, entry):
                continue
            if changes.base.get(path, 0) != tree.version(path):
                conflicts.append(PathConflict(path, ConflictOutcome.COMMAND_WINS, path))
        if not _has_same_content(tree.heads.get(target), entry):
            puts[target] = entry
    return _build_plan(tree, removed, puts, conflicts)


def _plan_deletions(
    changes: CommandChanges, tree: Tree
) -> tuple[frozenset[Path], Sequence[PathConflict]]:
    """Paths to delete, and conflicts of those that were changed concurrently."""
    live = [path for path in sorted(changes.deleted) if path in tree.heads]
    skipped = [path for path in live if tree.version(path) != changes.base.get(path)]
    conflicts = [
        PathConflict(path, ConflictOutcome.DELETION_SKIPPED, path, tree.version(path))
        for path in skipped
    ]
    return frozenset(live) - frozenset(skipped), conflicts


class _MergedTree:
    """The workspace after the command's deletions."""

    def __init__(self, tree: Tree, removed: frozenset[Path]) -> None:
        self._heads = {path: head for path, head in tree.heads.items() if path not in removed}
        self._files_below: dict[Path, Head] = {}
        for path in sorted(self._heads, reverse=True):
            self._files_below.update(dict.fromkeys(path.parents, self._heads[path]))

    def blocking_path(self, path: Path) -> Path | None:
        """Path that is a file on one side and a directory on the other."""
        if path in self._files_below:
            return path
        return next((parent for parent in path.parents if parent in self._heads), None)

    def file_below(self, directory: Path) -> Head:
        return self._files_below[directory]


def _build_plan(
    tree: Tree,
    removed: frozenset[Path],
    puts: Mapping[Path, Entry],
    conflicts: Sequence[PathConflict],
) -> MergePlan:
    emptied = {parent for path in removed for parent in path.parents}
    deferred = {
        path for path in puts if path in emptied or not removed.isdisjoint(path.parents)
    } - tree.heads.keys()
    scope = tree.scope
    immediate = [Write(scope, path, None) for path in sorted(removed)]
    immediate += [Write(scope, path, entry) for path, entry in puts.items() if path not in deferred]
    new_paths = [path for path in puts if path not in tree.heads]
    path_checks = {path: PathFree(path, (scope,)) for path in new_paths}
    return MergePlan(
        tuple(immediate),
        tuple(Write(scope, path, puts[path]) for path in puts if path in deferred),
        tuple(
            expect_unchanged(tree, path)
            for path in (*sorted(removed), *puts)
            if path not in deferred
        ),
        tuple(path_checks[path] for path in new_paths if path not in deferred),
        tuple(path_checks[path] for path in new_paths if path in deferred),
        tuple(conflicts),
    )


def check_quota(plan: MergePlan, tree: Tree, quota: Quota) -> QuotaExceeded | None:
    """Check the quota for the whole plan, which spans two commits."""
    writes = (*plan.writes, *plan.deferred_writes)
    new_sizes = {write.path: write.entry.blob.size if write.entry else None for write in writes}
    return check_sizes(tree, new_sizes, quota)


def check_sizes(
    tree: Tree, new_sizes: Mapping[Path, int | None], quota: Quota
) -> QuotaExceeded | None:
    """Check the quota for files of these sizes; None deletes a file."""
    sizes = {path: head.entry.blob.size for path, head in tree.heads.items() if head.entry}
    files, size = len(sizes), sum(sizes.values())
    for path, new_size in new_sizes.items():
        sizes.pop(path, None)
        if new_size is not None:
            sizes[path] = new_size
    too_many = len(sizes) > max(quota.max_files, files)
    too_large = quota.max_bytes is not None and sum(sizes.values()) > max(quota.max_bytes, size)
    return QuotaExceeded(quota, len(sizes), sum(sizes.values())) if too_many or too_large else None


def _has_same_content(head: Head | None, entry: Entry) -> bool:
    current = head.entry if head else None
    return current is not None and (current.blob, current.type) == (entry.blob, entry.type)


def _conflict_path(path: Path, blocker: Path, label: str, number: int) -> Path:
    """Path beside the blocking one, keeping the segments below it."""
    suffix = f".conflict-{label}"
    directory, _, name = blocker.text.rpartition("/")
    stem = name.encode()[: MAX_SEGMENT_BYTES - len(suffix)].decode(errors="ignore")
    candidate = f"{directory}/{stem}{suffix}" if directory else stem + suffix
    try:
        return Path(candidate + path.text[len(blocker.text) :])
    except ValidationError:  # too long with the suffix
        return Path(f"conflict-{label}/{number}")


def conflict_warnings(
    conflicts: Sequence[PathConflict], authors: Mapping[tuple[Path, int], str]
) -> Iterator[str]:
    """Warnings for the caller: for each conflict, its author and outcome."""
    for conflict in conflicts[:MAX_LISTED_PATHS]:
        assert conflict.version is not None
        author = authors.get((conflict.other_path, conflict.version), "another author")
        location = "" if conflict.other_path == conflict.path else f" in {conflict.other_path}"
        description = f"also changed by {author} at version {conflict.version}{location}"
        match conflict.outcome:
            case ConflictOutcome.COMMAND_WINS:
                yield f"[warning: {conflict.path} was {description}, which stays in its history]"
            case ConflictOutcome.DELETION_SKIPPED:
                yield f"[warning: {conflict.path} was not deleted: {description}]"
            case ConflictOutcome.STORED_ASIDE:
                yield f"[warning: {conflict.path} is kept as {conflict.stored_path}: {description}]"
    if len(conflicts) > MAX_LISTED_PATHS:
        yield f"[warning: the same applies to {len(conflicts) - MAX_LISTED_PATHS} other paths]"


def format_paths(paths: Sequence[Path]) -> str:
    """Comma-separated paths, at most MAX_LISTED_PATHS."""
    remaining = len(paths) - MAX_LISTED_PATHS
    listed = ", ".join(path.text for path in paths[:MAX_LISTED_PATHS])
    return f"{listed} and {remaining} more" if remaining > 0 else listed
