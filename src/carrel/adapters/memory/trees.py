"""Trees in dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from types import MappingProxyType

from carrel.adapters.memory.commit_apply import apply, check_storable
from carrel.adapters.memory.commit_check import check_commit
from carrel.adapters.memory.state import MemoryState, ScopeHistory
from carrel.core.identifiers import Path, Scope
from carrel.core.retention import whole_since
from carrel.core.runs import SnapshotLayer
from carrel.core.store.tree import Commit, Head, Outcome, Tree, Version


class MemoryTrees:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        return tuple(self._tree(layer, paths, prefix) for layer in layers)

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        return tuple(self._state.told(scope).revision for scope in scopes)

    async def versions(self, asks: Sequence[tuple[Scope, Path, int]]) -> tuple[Version | None, ...]:
        return tuple(
            next((v for v in self._versions(scope, path) if v.head.version == number), None)
            for scope, path, number in asks
        )

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        newest = reversed(self._versions(scope, path))
        return tuple(
            islice((v for v in newest if before is None or v.head.version < before), limit)
        )

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        said = [version for some in self._state.told(scope).paths.values() for version in some]
        return tuple(sorted((v for v in said if _place(v) > after), key=_place)[:limit])

    async def complete_since(self, scope: Scope) -> int:
        return max(map(whole_since, self._state.told(scope).paths.values()), default=0)

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        for commit in commits:
            check_storable(commit)
        return tuple(
            check_commit(self._state, commit) or apply(self._state, commit) for commit in commits
        )

    def _versions(self, scope: Scope, path: Path) -> Sequence[Version]:
        return self._state.told(scope).paths.get(path, ())

    def _tree(
        self, layer: Scope | SnapshotLayer, paths: Collection[Path] | None, prefix: str
    ) -> Tree:
        scope = layer.scope if isinstance(layer, SnapshotLayer) else layer
        told = self._state.told(scope)
        revision = layer.revision if isinstance(layer, SnapshotLayer) else told.revision
        if paths is None:
            starting = (path for path in sorted(told.paths) if path.text.startswith(prefix))
            found = [head for head in _heads(told, starting, revision) if head.entry]
        else:
            found = list(_heads(told, paths, revision))
        return Tree(scope, revision, MappingProxyType({head.path: head for head in found}))


def _place(version: Version) -> tuple[int, str, int]:
    return version.head.revision, version.head.path.text, version.head.version


def _heads(told: ScopeHistory, paths: Iterable[Path], revision: int) -> Iterable[Head]:
    return filter(None, (told.head_at(path, revision) for path in paths))
