"""Why a commit cannot be applied to what is there, checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from carrel.adapters.memory.state import MemoryState, RecordKey
from carrel.core.identifiers import Path
from carrel.core.store.record import RecordChange
from carrel.core.store.tree import (
    Commit,
    Entry,
    ExpectationFailed,
    PathFree,
    PathOccupied,
    Quota,
    QuotaExceeded,
)


def check_commit(
    state: MemoryState, commit: Commit
) -> ExpectationFailed | PathOccupied | QuotaExceeded | None:
    return next(_refusals(state, commit), None)


def _refusals(
    state: MemoryState, commit: Commit
) -> Iterator[ExpectationFailed | PathOccupied | QuotaExceeded]:
    for expect in commit.expects:
        found = state.told(expect.scope).head(expect.path)
        if not expect.holds(found):
            yield ExpectationFailed(expect, found)
    for collection_revision in commit.collection_revisions:
        if (
            state.shelves.get((collection_revision.tenant, collection_revision.type), 0)
            != collection_revision.revision
        ):
            yield ExpectationFailed(collection_revision)
    yield from _moved(state, commit.changes)
    yield from _blocked(state, commit.path_checks)
    for quota in commit.quotas:
        if full := _full(state, commit, quota):
            yield full


def _moved(state: MemoryState, changes: Iterable[RecordChange]) -> Iterator[ExpectationFailed]:
    """Changes are tried in order, so that one may take the name that one before it gave up."""
    revisions: dict[RecordKey, int] = {}
    owners: dict[str, RecordKey | None] = {**state.handles}
    for change in changes:
        key = (change.tenant, change.type, change.id)
        record = state.records.get(key)
        revision = revisions.get(key, record.revision if record else 0)
        if change.expected not in {None, revision}:
            yield ExpectationFailed(change)
        wanted = change.unique_keys if change.body is not None else ()
        for handle in wanted:
            if owners.get(handle) not in {None, key}:
                yield ExpectationFailed(change, handle=handle)
        owners = {name: owner for name, owner in owners.items() if owner != key}
        owners |= dict.fromkeys(wanted, key)
        revisions[key] = 0 if change.body is None else revision + 1


def _blocked(state: MemoryState, rooms: Iterable[PathFree]) -> Iterator[PathOccupied]:
    for room in rooms:
        yield from (PathOccupied(room, author) for author in _in_the_way(state, room))


def _in_the_way(state: MemoryState, room: PathFree) -> Iterator[Path]:
    if state.entry(room.scopes[0], room.path):
        return
    for scope in room.scopes:
        yield from (parent for parent in room.path.parents if state.entry(scope, parent))
        beneath = (path for path in sorted(state.told(scope).paths) if room.path in path.parents)
        yield from (path for path in beneath if state.entry(scope, path))


def _full(state: MemoryState, commit: Commit, quota: Quota) -> QuotaExceeded | None:
    told = state.told(quota.scope)
    last = {write.path: write.entry for write in commit.writes if write.scope == quota.scope}
    files, size = told.files, told.size
    for path, entry in last.items():
        was = state.entry(quota.scope, path)
        files += bool(entry) - bool(was)
        size += _size(entry) - _size(was)
    crowded = files > max(quota.files, told.files)
    heavy = quota.size is not None and size > max(quota.size, told.size)
    return QuotaExceeded(quota, files, size) if crowded or heavy else None


def _size(entry: Entry | None) -> int:
    return entry.blob.size if entry else 0
