"""Trees of a dry run: commits are checked like those of a store, and held in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.dry_runs.pending_changes import PendingChanges
from carrel.actions.dry_runs.pending_records import PendingRecords
from carrel.core.agents.layers import agent_scopes, build_stack
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.runs import SnapshotLayer
from carrel.core.store.commit import (
    Applied,
    Commit,
    ExpectationFailed,
    ExpectPathFree,
    ExpectPathsUnchanged,
    Outcome,
    PathOccupant,
    PathOccupied,
    Quota,
    QuotaExceeded,
    Write,
    first_occupant,
    stored_file_id,
)
from carrel.core.store.entry import Entry, Head, Version
from carrel.core.store.record import RecordType
from carrel.core.store.tree import ScopeMoment, Tree, build_tree
from carrel.ports.trees import Trees

_Key = tuple[Scope, Path]
_MAX_FOLLOWERS: Final = 1_000_000


@dataclass(slots=True)
class _ScopeTotals:
    """Live files of a scope and their bytes."""

    files: int
    size: int


class PendingTrees:
    """Trees of a dry run over those of the store. Histories are those of the store."""

    def __init__(self, stored: Trees, records: PendingRecords, changes: PendingChanges) -> None:
        self._stored = stored
        self._records = records
        self._changes = changes
        self._totals: dict[Scope, _ScopeTotals] = {}

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        trees = await self._stored.read(layers, paths, prefix=prefix)
        return tuple(
            tree if isinstance(layer, SnapshotLayer) else self._overlay(tree, paths, prefix)
            for layer, tree in zip(layers, trees, strict=True)
        )

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        stored, pending = await self._stored.revisions(scopes), self._changes.revisions
        pairs = zip(scopes, stored, strict=True)
        return tuple(revision + pending.get(scope, 0) for scope, revision in pairs)

    async def versions(
        self, requests: Sequence[tuple[Scope, Path, int]]
    ) -> tuple[Version | None, ...]:
        return await self._stored.versions(requests)

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        return await self._stored.history(scope, path, before=before, limit=limit)

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        return await self._stored.log(scope, after=after, limit=limit)

    async def latest_versions(
        self, scope: Scope, *, before: tuple[int, str, int] | None = None, limit: int = 1000
    ) -> tuple[Version, ...]:
        return await self._stored.latest_versions(scope, before=before, limit=limit)

    async def moments(self, scopes: Sequence[Scope], at: TimestampMs) -> tuple[ScopeMoment, ...]:
        return await self._stored.moments(scopes, at)

    async def complete_since(self, scope: Scope) -> int:
        return await self._stored.complete_since(scope)

    async def find_occupants(self, check: ExpectPathFree) -> tuple[PathOccupant, ...]:
        if not check.reads_listing:
            return ()
        scopes = tuple(dict.fromkeys((*check.scopes, *await self._follower_scopes(check))))
        return tuple(
            occupant
            for tree in await self.read(scopes)
            for occupant in check.find_occupants(_listed_rows(tree, check.path))
        )

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        return tuple([await self._apply(commit) for commit in commits])

    def _overlay(self, tree: Tree, paths: Collection[Path] | None, prefix: str) -> Tree:
        pending = self._changes.heads_of(tree.scope)
        if not pending:
            return tree
        revision = tree.revision + self._changes.revisions.get(tree.scope, 0)
        if paths is not None:
            changed_heads = {path: pending[path] for path in paths if path in pending}
            return replace(tree, revision=revision, heads={**tree.heads, **changed_heads})
        changed = {path: head for path, head in pending.items() if path.text.startswith(prefix)}
        current = {**tree.heads, **tree.directories, **changed}
        heads = [current[path] for path in sorted(current)]
        listed = build_tree(tree.scope, revision, heads, None)
        stored_tombstones = {
            path: version for path, version in tree.tombstones.items() if path not in changed
        }
        return replace(listed, tombstones={**stored_tombstones, **listed.tombstones})

    async def _apply(self, commit: Commit) -> Outcome:
        if (check := commit.unchanged_paths) and not await self._are_unchanged(check):
            return ExpectationFailed(check)
        heads = await self._read_heads(commit)
        for expect in commit.expects:
            head = heads.get((expect.scope, expect.path))
            if not expect.holds(head):
                return ExpectationFailed(expect, head)
        refusal = await self._records.find_conflict(commit) or await self._path_occupied(commit)
        if refusal:
            return refusal
        writes = [
            write
            for write in commit.writes
            if not write.is_deletion
            or write.reviewed is not None
            or _is_live(heads.get((write.scope, write.path)))
        ]
        if exceeded := await self._quota_exceeded(commit.quotas, writes, heads):
            return exceeded
        await self._records.apply(commit)
        return Applied(await self._write_all(commit, writes, heads))

    async def _are_unchanged(self, check: ExpectPathsUnchanged) -> bool:
        scopes = tuple(check.revisions)
        revisions = zip(scopes, await self.revisions(scopes), strict=True)
        changed = [scope for scope, revision in revisions if revision > check.revisions[scope]]
        logs = [await self._changed_since(scope, check.revisions[scope]) for scope in changed]
        return check.holds(text for texts in logs for text in texts)

    async def _changed_since(self, scope: Scope, revision: int) -> set[str]:
        """Paths of a scope that changed after a revision."""
        pending = self._changes.heads_of(scope).items()
        texts = {path.text for path, head in pending if head.revision > revision}
        after = (revision + 1, "", 0)
        while versions := await self._stored.log(scope, after=after):
            last = versions[-1].head
            texts |= {version.head.path.text for version in versions}
            after = (last.revision, last.path.text, last.version)
        return texts

    async def _read_heads(self, commit: Commit) -> dict[_Key, Head]:
        keys = {(expect.scope, expect.path) for expect in commit.expects}
        keys |= {(write.scope, write.path) for write in commit.writes}
        scopes, paths = sorted({scope for scope, _ in keys}), {path for _, path in keys}
        trees = await self.read(scopes, paths) if scopes else ()
        return {(tree.scope, path): head for tree in trees for path, head in tree.heads.items()}

    async def _path_occupied(self, commit: Commit) -> PathOccupied | None:
        deleted = {(write.scope, write.path) for write in commit.writes if write.is_deletion}
        for check in commit.path_checks:
            if occupant := await self._find_occupant(check, deleted):
                return PathOccupied(check, occupant)
        return None

    async def _find_occupant(
        self, check: ExpectPathFree, deleted: AbstractSet[_Key]
    ) -> Path | None:
        path = check.path
        above = await self.read(check.scopes, (path, *path.parents))
        if above[0].entry(path):
            return None
        below = await self.read(check.scopes, prefix=f"{path}/")
        for parents, directory in zip(above, below, strict=True):
            scope = parents.scope
            for parent in path.parents:
                if parents.entry(parent) and (scope, parent) not in deleted:
                    return parent
            is_directory = not parents.entry(path) and _is_live(parents.heads.get(path))
            if is_directory and (scope, path) not in deleted:
                return path
            below_paths = (*directory.heads, *directory.directories)
            if live_below := [path for path in below_paths if (scope, path) not in deleted]:
                return min(live_below)
        return first_occupant(await self.find_occupants(check), deleted)

    async def _follower_scopes(self, check: ExpectPathFree) -> Sequence[Scope]:
        """Own scopes and pins of the agents above a layer."""
        if check.followers is None:
            return ()
        agents = await self._records.list(
            check.scopes[0].tenant,
            RecordType.AGENT,
            index_key=check.followers,
            limit=_MAX_FOLLOWERS,
        )
        return [scope for agent in agents for scope in agent_scopes(build_stack(agent))]

    async def _quota_exceeded(
        self, quotas: Iterable[Quota], writes: Sequence[Write], heads: Mapping[_Key, Head]
    ) -> QuotaExceeded | None:
        for quota in quotas:
            final = {write.path: write for write in writes if write.scope == quota.scope}
            totals = await self._load_totals(quota.scope)
            pairs = [(write.entry, _entry(heads, write)) for write in final.values()]
            files = sum(_count(after) - _count(before) for after, before in pairs)
            size = sum(_size(after) - _size(before) for after, before in pairs)
            has_too_many = files > 0 and totals.files + files > quota.max_files
            is_too_large = (
                quota.max_bytes is not None and size > 0 and totals.size + size > quota.max_bytes
            )
            if has_too_many or is_too_large:
                return QuotaExceeded(quota, totals.files + files, totals.size + size)
        return None

    async def _load_totals(self, scope: Scope) -> _ScopeTotals:
        if scope not in self._totals:
            [tree] = await self.read([scope])
            sizes = [_size(head.entry) for head in tree.heads.values()]
            self._totals[scope] = _ScopeTotals(len(sizes), sum(sizes))
        return self._totals[scope]

    async def _write_all(
        self, commit: Commit, writes: Sequence[Write], before: dict[_Key, Head]
    ) -> tuple[Head, ...]:
        revisions = self._changes.revisions
        for scope in {write.scope for write in writes}:
            revisions[scope] = revisions.get(scope, 0) + 1
        scopes = tuple({write.scope for write in commit.writes})
        current = dict(zip(scopes, await self.revisions(scopes), strict=True))
        effective, heads = {id(write) for write in writes}, []
        for write in commit.writes:
            head = before.get((write.scope, write.path))
            if id(write) in effective:
                head = self._write(commit, write, current[write.scope], head)
                before[write.scope, write.path] = head
            heads.append(head or Head(write.path, 0, current[write.scope], commit.at, None))
        return tuple(heads)

    def _write(self, commit: Commit, write: Write, revision: int, previous: Head | None) -> Head:
        head = Head(
            write.path,
            previous.version + 1 if previous else 1,
            revision,
            commit.at,
            write.entry,
            max(write.version_offset, previous.version_offset if previous else 0),
            write.directory,
            stored_file_id(write, previous),
            write.reviewed,
        )
        self._changes.heads.setdefault(write.scope, {})[write.path] = head
        entry, replaced = write.entry, previous.entry if previous else None
        if write.scope in self._totals:
            self._totals[write.scope].files += _count(entry) - _count(replaced)
            self._totals[write.scope].size += _size(entry) - _size(replaced)
        return head


def _listed_rows(tree: Tree, path: Path) -> Iterator[tuple[str | None, str | None, str]]:
    """Rows of a tree as `ExpectPathFree.find_occupants` reads them."""
    kind, name, parents = tree.scope.kind.value, tree.scope.name, frozenset(path.parents)
    for other in (*tree.heads, *tree.directories):
        is_parent = other in parents and other in tree.heads
        is_directory = other == path and other in tree.directories
        if is_parent or is_directory or other.text.startswith(f"{path}/"):
            yield kind, name, other.text
        yield None, None, other.text


def _entry(heads: Mapping[_Key, Head], write: Write) -> Entry | None:
    head = heads.get((write.scope, write.path))
    return head.entry if head else None


def _is_live(head: Head | None) -> bool:
    return head is not None and head.is_live


def _count(entry: Entry | None) -> int:
    return 1 if entry else 0


def _size(entry: Entry | None) -> int:
    return entry.blob.size if entry else 0
