"""Merge of a command's file changes with concurrent writes.

Changes of different paths merge. On the same path the command wins and the other version stays in
history, but a modification beats a deletion. If one side has a file and the other a directory, both
are kept. The plan is decided again after every conflict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import ValidationError
from carrel.core.files.file_kinds import LINK_TYPE, file_kind, typed_as
from carrel.core.identifiers import MAX_SEGMENT_BYTES, Path
from carrel.core.sandbox.workspace_directories import list_directories
from carrel.core.store.commit import (
    Expect,
    ExpectPathFree,
    Quota,
    QuotaExceeded,
    Write,
    expect_unchanged,
)
from carrel.core.store.entry import Entry, FileAttributes, Head
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
    """Files and directories."""
    directories: Mapping[Path, FileAttributes] = {}
    """Directories that are new, or have another mode or time."""
    touched: frozenset[Path] = frozenset()
    """Changed files whose content is the one that the command started with."""
    known_directories: Mapping[Path, FileAttributes] = {}
    """Every directory that the command started with; none if directories are not reported."""


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


class ChangeType(StrEnum):
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class CommittedFile(Struct, frozen=True):
    """A file as a command's commit left it."""

    path: str
    version: int
    """Of the deletion, if the file was deleted."""
    change: ChangeType


def committed_files(heads: Iterable[Head], start: Tree) -> Iterator[CommittedFile]:
    """Files among the new heads, compared with what the command started with."""
    for head in heads:
        existed = start.entry(head.path) is not None
        if head.entry is not None:
            change = ChangeType.MODIFIED if existed else ChangeType.CREATED
            yield CommittedFile(head.path.text, head.version, change)
        elif existed:
            yield CommittedFile(head.path.text, head.version, ChangeType.DELETED)


class MergePlan(Struct, frozen=True):
    writes: tuple[Write, ...]
    deferred_writes: tuple[Write, ...]
    """Writes to paths that become free only after `writes` is committed."""
    expects: tuple[Expect, ...]
    path_checks: tuple[ExpectPathFree, ...]
    deferred_path_checks: tuple[ExpectPathFree, ...]
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
    for path, entry in sorted(_merged_entries(changes, tree).items()):
        blocker = merged.blocking_path(path)
        head = tree.heads.get(blocker or path)
        if blocker is not None:
            target = _conflict_path(path, blocker, label, len(conflicts))
            other_head = head or merged.head_below(blocker)
            conflicts.append(
                PathConflict(
                    path, ConflictOutcome.STORED_ASIDE, other_head.path, other_head.version, target
                )
            )
        else:
            target = path
            is_concurrent = changes.base.get(path, 0) != _live_version(tree, path)
            if is_concurrent and path not in changes.touched:
                if _has_same_content(head, entry):
                    continue
                conflicts.append(PathConflict(path, ConflictOutcome.COMMAND_WINS, path))
        if tree.entry(target) != entry:
            puts[target] = entry
    directories = _plan_directories(changes, tree, merged, puts)
    return _build_plan(tree, removed, puts, directories, conflicts)


def _merged_entries(changes: CommandChanges, tree: Tree) -> dict[Path, Entry]:
    """Changed files, where a file that was only touched keeps a concurrent content.

    The command has not seen the concurrent changes, so its files are not newer than these: a build
    that used the earlier content is out of date.
    """
    concurrent = [
        head.at
        for path, head in tree.heads.items()
        if changes.base.get(path) != head.version and path not in changes.changed
    ]
    newest_ns = min(concurrent) * 1_000_000 - 1 if concurrent else None
    entries = {}
    for path, entry in changes.changed.items():
        current = tree.entry(path)
        if path not in changes.touched or changes.base.get(path, 0) == tree.version(path):
            entries[path] = _limit_time(entry, newest_ns)
        elif current is not None and LINK_TYPE not in {current.type, entry.type}:
            entries[path] = _with_mode(current, entry)
    return entries


def _limit_time(entry: Entry, newest_ns: int | None) -> Entry:
    attributes = entry.attributes
    if newest_ns is None or attributes is None or attributes.mtime_ns is None:
        return entry
    time = min(attributes.mtime_ns, newest_ns)
    return replace(entry, attributes=FileAttributes(attributes.mode, time))


def _with_mode(current: Entry, touched: Entry) -> Entry:
    """The current file with the mode that the command gave it."""
    mode = touched.attributes.mode if touched.attributes else None
    time = current.attributes.mtime_ns if current.attributes else None
    attributes = None if mode is time is None else FileAttributes(mode, time)
    type = typed_as(file_kind(touched.type), current.type)
    return replace(current, type=type, attributes=attributes)


def _plan_directories(
    changes: CommandChanges, tree: Tree, merged: _MergedTree, puts: Collection[Path]
) -> dict[Path, FileAttributes]:
    """Directories to write; a file in the place of one comes first."""
    current = list_directories(tree).directories
    planned = {}
    for path, attributes in changes.directories.items():
        if path in puts or merged.is_below_file(path):
            continue
        before = changes.known_directories.get(path)
        if before is not None and before.mode == attributes.mode and path not in current:
            continue  # deleted concurrently, and only its time was changed
        head = tree.directories.get(path)
        if head is not None and changes.base.get(path) != head.version:
            planned[path] = _merged_attributes(head.directory, attributes)
        else:
            planned[path] = attributes
    planned = {
        path: attributes
        for path, attributes in planned.items()
        if path not in tree.directories or tree.directories[path].directory != attributes
    }
    changed = (*puts, *changes.deleted, *planned)
    parents = {parent for path in changed for parent in path.parents}
    remaining = merged.directories | {parent for path in puts for parent in path.parents}
    # The time of these would otherwise follow the changes below them.
    unplanned = parents & remaining & changes.known_directories.keys() & current.keys()
    unplanned = unplanned.difference(planned, tree.directories)
    return planned | {path: current[path] for path in unplanned}


def _merged_attributes(current: FileAttributes | None, changed: FileAttributes) -> FileAttributes:
    """Mode of a concurrent change, and the newer time of both."""
    if current is None:
        return changed
    times = [time for time in (current.mtime_ns, changed.mtime_ns) if time is not None]
    return FileAttributes(current.mode, max(times, default=None))


def _plan_deletions(
    changes: CommandChanges, tree: Tree
) -> tuple[frozenset[Path], Sequence[PathConflict]]:
    """Paths to delete, and conflicts of files that were changed concurrently.

    A directory in whose place the command leaves a file is deleted, even if that is not reported.
    """
    heads = {**tree.heads, **tree.directories}
    replaced = {
        path
        for path in changes.base.keys() & tree.directories.keys()
        if not changes.changed.keys().isdisjoint((path, *path.parents))
    }
    live = [path for path in sorted(changes.deleted | replaced) if path in heads]
    skipped = [path for path in live if heads[path].version != changes.base.get(path)]
    conflicts = [
        PathConflict(path, ConflictOutcome.DELETION_SKIPPED, path, tree.version(path))
        for path in skipped
        if path in tree.heads
    ]
    return frozenset(live) - frozenset(skipped), conflicts


class _MergedTree:
    """The workspace after the command's deletions."""

    def __init__(self, tree: Tree, removed: frozenset[Path]) -> None:
        self._heads = {path: head for path, head in tree.heads.items() if path not in removed}
        self._directories = {
            path: head for path, head in tree.directories.items() if path not in removed
        }
        self._heads_below: dict[Path, Head] = dict(self._directories)
        every_head = {**self._directories, **self._heads}
        for path in sorted(every_head, reverse=True):
            self._heads_below.update(dict.fromkeys(path.parents, every_head[path]))

    def blocking_path(self, path: Path) -> Path | None:
        """Path that is a file on one side and a directory on the other."""
        if path in self._heads_below:
            return path
        return next((parent for parent in path.parents if parent in self._heads), None)

    @property
    def directories(self) -> Set[Path]:
        """Directories that exist by themselves or hold something."""
        return self._heads_below.keys()

    def is_below_file(self, path: Path) -> bool:
        """Whether the path or a parent of it is a file."""
        return any(parent in self._heads for parent in (path, *path.parents))

    def head_below(self, directory: Path) -> Head:
        """Something in a directory, or else the directory."""
        return self._heads_below[directory]


def _build_plan(
    tree: Tree,
    removed: frozenset[Path],
    puts: Mapping[Path, Entry],
    directories: Mapping[Path, FileAttributes],
    conflicts: Sequence[PathConflict],
) -> MergePlan:
    emptied = removed.union(parent for path in removed for parent in path.parents)
    deferred = {
        path for path in puts if path in emptied or not removed.isdisjoint(path.parents)
    } - tree.heads.keys()
    scope = tree.scope
    immediate = [Write(scope, path, None) for path in sorted(removed - directories.keys())]
    immediate += [
        Write(scope, path, None, directory=attributes) for path, attributes in directories.items()
    ]
    immediate += [Write(scope, path, entry) for path, entry in puts.items() if path not in deferred]
    new_paths = [path for path in puts if path not in tree.heads]
    path_checks = {path: ExpectPathFree(path, (scope,)) for path in new_paths}
    return MergePlan(
        tuple(immediate),
        tuple(Write(scope, path, puts[path]) for path in puts if path in deferred),
        (
            *(
                expect_unchanged(tree, path)
                for path in (*sorted(removed), *puts)
                if path not in deferred or path in removed
            ),
            *(Expect(scope, path, live=False) for path in sorted(directories.keys() - removed)),
            *_expect_no_files(tree, directories, removed),
        ),
        tuple(path_checks[path] for path in new_paths if path not in deferred),
        tuple(path_checks[path] for path in new_paths if path in deferred),
        tuple(conflicts),
    )


def _expect_no_files(
    tree: Tree, directories: Collection[Path], removed: Collection[Path]
) -> Iterator[Expect]:
    """Expect that no directory is created below a file."""
    parents = {parent for path in directories for parent in path.parents}
    return (
        Expect(tree.scope, parent, live=False)
        for parent in sorted(parents.difference(removed, directories))
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


def _live_version(tree: Tree, path: Path) -> int:
    """Version of a file or directory, 0 if there is neither."""
    head = tree.heads.get(path) or tree.directories.get(path)
    return head.version if head else 0


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
