"""Versions of a file as its stack numbers them, whatever layer they come from.

A stack of one layer shows the layer's own numbers. In an agent's stack the agent's versions carry
an offset (core/store/entry.py), and an inherited version follows the agent's last one: so numbers
only rise with writes to the agent, and each leads back to one version of one layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from carrel.actions.overlay.agent_layers import load_resolver
from carrel.actions.records import Page
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Scope, Stack, TimestampMs
from carrel.core.overlay.agent_resolution import (
    AgentFileResolver,
    file_from_version,
    is_pin,
    lower_scopes,
)
from carrel.core.overlay.compose import File, Layers, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.entry import Head, Version
from carrel.ports import Ports

_PAGE_SIZE = 100


class StackVersion(Struct, frozen=True):
    """One version in the history of a file, with its layer."""

    row: Version
    layer: Scope
    own_version: int = 0
    """Version that the stack had reached before it inherited this one."""

    @property
    def number(self) -> int:
        return self.own_version + self.row.head.stack_version

    @property
    def file_id(self) -> str | None:
        """Id of the file; None for a deletion and for a directory."""
        head = self.row.head
        return head.file_id(self.layer) if head.entry else None


class VersionedPath(Struct, frozen=True):
    """A path of a stack, read together with the versions of its layers."""

    ports: Ports
    stack: Stack
    path: Path
    layers: Layers
    resolver: AgentFileResolver | None
    file: File | None
    """The file as it is served now."""

    @property
    def own_scope(self) -> Scope:
        return self.stack[0]

    @property
    def file_class(self) -> FileClass:
        return self.resolver.classes.class_of(self.path) if self.resolver else FileClass.LIVE

    async def find(self, number: int) -> StackVersion:
        """Return a version, deletions included. Raises NotFound."""
        if self.file and self.file.version == number:
            [row] = await self._load([(self.file.source, self.path, self.file.head.version)])
            if row is not None:
                return StackVersion(row, self.file.source, self.file.own_version)
        own = await self._own_version_at(number)
        if own is not None and own.head.stack_version == number:
            return StackVersion(own, self.own_scope)
        if own is None or self._can_inherit_after(own.head):
            start = own.head.stack_version if own else 0
            scopes = await self._inherited_scopes(own)
            requests = [(scope, self.path, number - start) for scope in scopes]
            for scope, row in zip(scopes, await self._load(requests), strict=True):
                if row is not None and row.head.entry is not None:
                    return StackVersion(row, scope, start)
        raise NotFound(f"no such version of {self.path}: {number}")

    async def page(self, before: int | None, limit: int) -> Page[StackVersion]:
        """List versions, newest first. Raises NotFound if there are none."""
        rows = await self._inherited_now(before, limit)
        own = await self._own_versions(before, limit + 1 - len(rows))
        rows += own
        if len(rows) <= limit:
            rows += await self._inherited_first(before, limit)
        if not rows and before is None:
            raise NotFound(f"{self.path} has no history here")
        has_more = len(rows) > limit
        return Page(tuple(rows[:limit]), str(rows[limit - 1].number) if has_more else None)

    def to_file(self, version: StackVersion) -> File:
        """Return a version as the file that the stack served. It must not be a deletion."""
        if self.file and self.file.version == version.number:
            return self.file
        return file_from_version(
            self.stack, self.resolver, version.row.head, version.layer, version.own_version
        )

    async def _load(self, requests: Sequence[tuple[Scope, Path, int]]) -> Sequence[Version | None]:
        return await self.ports.trees.versions(requests) if requests else ()

    def _can_inherit_after(self, own: Head) -> bool:
        """Whether a lower layer may have been served after this version of the nearest layer."""
        return own.entry is None or is_pin(own.entry) or self.file_class is FileClass.MANAGED

    async def _inherited_scopes(self, own: Version | None) -> Stack:
        """Lower layers, the one first that was inherited after a version of the nearest layer.

        Several layers may have a version of the same number. The next version of the nearest layer
        names the content that it replaced; without one, the layer is inherited now.
        """
        scopes = lower_scopes(self.stack, self.file_class)
        version = own.head.version if own else 0
        if version == self.layers[0].version(self.path):
            first = self.file.source if self.file else None
        else:
            [following] = await self._load([(self.own_scope, self.path, version + 1)])
            if following is None:  # pruned: what was inherited after `own`, and until when?
                return ()
            first = await self._find_replaced_layer(scopes, own, following)
        return tuple(sorted(scopes, key=lambda scope: scope != first))

    async def _find_replaced_layer(
        self, scopes: Stack, own: Version | None, following: Version
    ) -> Scope | None:
        """Layer of the file that the version after `own` replaced; None if unknown."""
        if following.head.entry is None:
            return None
        number = following.head.stack_version - 1 - (own.head.stack_version if own else 0)
        rows = await self._load([(scope, self.path, number) for scope in scopes])
        live = {
            scope: row.head.entry.blob
            for scope, row in zip(scopes, rows, strict=True)
            if row is not None and row.head.entry is not None
        }
        base = following.head.entry.base
        return next((scope for scope, blob in live.items() if blob == base), next(iter(live), None))

    async def _own_version_at(self, number: int) -> Version | None:
        """Newest version of the nearest layer up to this number; None if there was none yet.

        Raises NotFound if history does not reach back so far.
        """
        if len(self.stack) == 1:
            [row] = await self._load([(self.own_scope, self.path, number)])
            return row
        if not self.layers[0].version(self.path):
            return None
        before = number + 1
        while rows := await self.ports.trees.history(
            self.own_scope, self.path, before=before, limit=_PAGE_SIZE
        ):
            for row in rows:
                if row.head.stack_version <= number:
                    return row
            before = rows[-1].head.version
        [first] = await self._load([(self.own_scope, self.path, 1)])
        if first is None:
            raise NotFound(f"no such version of {self.path}: {number}")
        return None

    async def _own_versions(self, before: int | None, limit: int) -> list[StackVersion]:
        result: list[StackVersion] = []
        cursor = before
        while len(result) < limit:
            rows = await self.ports.trees.history(
                self.own_scope, self.path, before=cursor, limit=limit
            )
            result += [
                version
                for row in rows
                if _is_before(version := StackVersion(row, self.own_scope), before)
            ]
            if len(rows) < limit:
                break
            cursor = rows[-1].head.version
        return result[:limit]

    async def _inherited_now(self, before: int | None, limit: int) -> list[StackVersion]:
        """Versions of the layer that is inherited now, since the nearest layer last changed."""
        file = self.file
        if file is None or file.source == self.own_scope:
            return []
        # Version `before` is read too, since its time tells whether older ones were inherited.
        end = None if before is None else before - file.own_version + 1
        rows = await self.ports.trees.history(file.source, self.path, before=end, limit=limit + 2)
        if file.own_version:
            rows = rows[: _count_since(rows, self.layers[0].heads[self.path].at)]
        versions = [StackVersion(row, file.source, file.own_version) for row in rows]
        return [version for version in versions if _is_before(version, before)]

    async def _inherited_first(self, before: int | None, limit: int) -> list[StackVersion]:
        """Versions that were inherited before the first version of the nearest layer."""
        if len(self.stack) == 1 or not self.layers[0].version(self.path):
            return []
        [first] = await self._load([(self.own_scope, self.path, 1)])
        if first is None or not first.head.version_offset:
            return []
        layer = await self._find_replaced_layer(
            lower_scopes(self.stack, self.file_class), None, first
        )
        if layer is None:
            return []
        end = first.head.version_offset + 1
        end = end if before is None else min(end, before)
        rows = await self.ports.trees.history(layer, self.path, before=end, limit=limit + 1)
        return [StackVersion(row, layer) for row in rows]


def _is_before(version: StackVersion, number: int | None) -> bool:
    return number is None or version.number < number


def _count_since(versions: Sequence[Version], since: TimestampMs) -> int:
    """Count the newest versions that may have been current at `since` or later.

    The next older one was current then, unless one was written in that very millisecond.
    """
    return next((n for n, row in enumerate(versions) if row.head.at < since), len(versions)) + 1


async def load_versioned_path(ports: Ports, stack: Stack, path: Path) -> VersionedPath:
    layers = await ports.trees.read(stack, (path,))
    resolver = await load_resolver(ports, stack)
    file = resolve(path, layers) if resolver is None else resolver.resolve(path, layers)
    return VersionedPath(ports, stack, path, layers, resolver, file)
