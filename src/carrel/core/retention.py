"""Which old versions may go: none that is among the newest, and none that a kept run can see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def visible(versions: Sequence[tuple[int, int]], revisions: Iterable[int]) -> frozenset[int]:
    """The versions, of those given as (version, revision) in order, that snapshots can see.

    A snapshot at revision R sees the newest version said at or before R.
    """
    seen: set[int] = set()
    for revision in revisions:
        newest = [version for version, said in versions if said <= revision]
        seen.update(newest[-1:])
    return frozenset(seen)


def prunable(
    versions: Sequence[tuple[int, int]], keep: int, revisions: Iterable[int]
) -> tuple[int, ...]:
    """The versions that may go when ``keep`` are to stay and snapshots stand at ``revisions``."""
    if not versions:
        return ()
    newest = versions[-1][0]
    held = visible(versions, revisions)
    return tuple(v for v, _ in versions if v <= newest - keep and v not in held)
