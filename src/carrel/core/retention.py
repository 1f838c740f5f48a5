"""Which old versions may go: none that is among the newest, and none that a kept run can see.

Nor any of an agent that keeps its history in git.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from carrel.core.agents.config import config_of
from carrel.core.store.tree import Version


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


def keeps_all(agent: Mapping[str, Any] | None) -> bool:
    """Whether nothing may go of what an agent said: its git repository is made from all of it."""
    return agent is not None and config_of(agent.get("config") or {}).workspace_git.enabled


def whole_since(versions: Sequence[Version]) -> int:
    """The revision from which on all versions of a path are there, given those in order."""
    before, since = 0, 0
    for version in versions:
        if version.head.version != before + 1:
            since = version.head.revision
        before = version.head.version
    return since
