"""Bringing what stands in a place to what is planned for it, and saying what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from carrel.core.catalog import layout
from carrel.core.catalog.layout import Plan, ReviewedFileKey
from carrel.core.catalog.object_keys import beneath_others
from carrel.core.identifiers import Digest, digest
from carrel.core.store.tree import Blob
from carrel.ports import CorruptContent, ObjectStore, Ports

_OBJECTS: Final = 256
_BYTES: Final = 8 * 2**20
"""Contents that are held at once: this many objects, and bytes unless one is larger."""
_BARRED: Final = "another file stands where its directory would be"


class ExportFailure(Struct, frozen=True):
    """An object that is not as it should be."""

    key: str
    why: str
    passing: bool
    """It may be had another time; else the place cannot hold it."""


@dataclass(slots=True)
class ExportResult:
    """What came of projecting one tenant or several."""

    tenants: int = 0
    written: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: list[ExportFailure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Files whose names mean something else in this layout."""


class CatalogWriter:
    """Brings what stands under one prefix to what is wanted there, plan by plan."""

    def __init__(self, ports: Ports, object_store: ObjectStore, done: ExportResult) -> None:
        self._ports, self._depot, self._done = ports, object_store, done
        self._standing: dict[str, Digest | None] = {}
        """What is there and was not wanted so far."""
        self._reviewed: set[str] = set()
        """What several agents may want."""
        self._refused: dict[str, Blob | bytes] = {}

    async def look(self, prefix: str) -> None:
        async for key, known in self._depot.list(prefix):
            if layout.parse(key):
                self._standing[key] = known

    async def want(self, plan: Plan) -> None:
        """What is made from files is written after them, so that it tells of nothing to come."""
        barred = beneath_others(plan) if self._depot.forbids_nested_keys else frozenset()
        self._done.failures += [
            ExportFailure(key, _BARRED, passing=False) for key in sorted(barred)
        ]
        wanted = {key: plan[key] for key in plan if key not in barred}
        news = {key: wanted[key] for key in wanted if self._is_news(key, wanted[key])}
        for kind in (Blob, bytes):
            await self._put({key: news[key] for key in news if isinstance(news[key], kind)})

    async def finish(self) -> None:
        """Remove what nobody wanted; then there may be room for what was refused."""
        await self._depot.delete(list(self._standing))
        self._done.deleted += len(self._standing)
        again, self._refused = self._refused, {}
        for some in _loads(again):
            for key, reason in (await self._write(some)).items():
                self._done.failures.append(ExportFailure(key, reason, passing=False))

    def _is_news(self, key: str, content: Blob | bytes) -> bool:
        if key in self._reviewed:
            return False
        if isinstance(layout.parse(key), ReviewedFileKey):
            self._reviewed.add(key)
        name = content.digest if isinstance(content, Blob) else digest(content)
        same = self._standing.pop(key, None) == name
        self._done.unchanged += same
        return not same

    async def _put(self, contents: Plan) -> None:
        for some in _loads(contents):
            self._refused |= {key: some[key] for key in await self._write(some)}

    async def _write(self, contents: Plan) -> Mapping[str, str]:
        """What the place cannot hold, with the reason. What cannot be had leaves what is there."""
        refused = await self._depot.put(found := await self._bytes(contents))
        self._done.written += len(found) - len(refused)
        return refused

    async def _bytes(self, contents: Plan) -> dict[str, bytes]:
        blobs = {key: blob for key, blob in contents.items() if isinstance(blob, Blob)}
        made = {key: made for key, made in contents.items() if isinstance(made, bytes)}
        try:
            stored = await self._ports.blobs.get(set(blobs.values())) if blobs else {}
        except CorruptContent:
            return made | await self._one_by_one(blobs)
        return made | {key: stored[blob.digest] for key, blob in blobs.items()}

    async def _one_by_one(self, blobs: Mapping[str, Blob]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for key, blob in blobs.items():
            try:
                found[key] = (await self._ports.blobs.get([blob]))[blob.digest]
            except CorruptContent as problem:
                self._done.failures.append(ExportFailure(key, str(problem), passing=True))
        return found


def _loads(contents: Plan) -> Iterator[dict[str, Blob | bytes]]:
    """As many at a time as may be held in memory."""
    load: dict[str, Blob | bytes] = {}
    weight = 0
    for key, content in contents.items():
        size = content.size if isinstance(content, Blob) else len(content)
        if load and (len(load) >= _OBJECTS or weight + size > _BYTES):
            yield load
            load, weight = {}, 0
        load[key] = content
        weight += size
    if load:
        yield load
