"""Decides which old versions may be pruned.

The newest versions, versions that a retained run can read, and versions of an agent with git
enabled are never pruned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from carrel.core.store.entry import Version


def visible_versions(
    versions: Sequence[tuple[int, int]], revisions: Iterable[int]
) -> frozenset[int]:
    """Versions that snapshots at `revisions` can see.

    `versions` are ordered (version, revision) pairs. A snapshot at revision R sees the newest
    version written at or before R.
    """
    result: set[int] = set()
    for revision in revisions:
        newest = [version for version, version_revision in versions if version_revision <= revision]
        result.update(newest[-1:])
    return frozenset(result)


def prunable_versions(
    versions: Sequence[tuple[int, int]], keep: int, revisions: Iterable[int]
) -> tuple[int, ...]:
    """Versions outside the `keep` newest that no snapshot at `revisions` can see."""
    if not versions:
        return ()
    newest = versions[-1][0]
    visible_to_runs = visible_versions(versions, revisions)
    return tuple(v for v, _ in versions if v <= newest - keep and v not in visible_to_runs)


def complete_since(versions: Sequence[Version]) -> int:
    """First revision from which all versions of a path are present.

    `versions` are in order.
    """
    previous, since = 0, 0
    for version in versions:
        if version.head.version != previous + 1:
            since = version.head.revision
        previous = version.head.version
    return since
