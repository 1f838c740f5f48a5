"""One request: who asks, what it may do, and what it has been told already."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from graphql import GraphQLResolveInfo

from carrel.actions.agents import overview
from carrel.actions.agents.overview import PinOffer
from carrel.actions.blob_contents import contents_of, counts_of
from carrel.actions.overlay import pins
from carrel.actions.runs import runs
from carrel.core.access import Actor, Permission
from carrel.core.errors import NotFound, WorkspaceTooLarge
from carrel.core.identifiers import Digest, Path, Scope, Stack
from carrel.core.overlay.compose import Workspace
from carrel.core.overlay.pins import PinStatus
from carrel.core.runs import Run
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Blob, Version
from carrel.ports import CorruptContent, Ports
from carrel.server.graphql.batch_loader import DataLoader
from carrel.server.graphql.errors import UnreadableFile
from carrel.server.graphql.file_types import File
from carrel.server.graphql.types import Agent

BlobKey: TypeAlias = tuple[Digest, int, object]


class ResolverContext:
    """The context of every resolver. Its loaders know only what this one request has asked."""

    def __init__(self, ports: Ports, actor: Actor, room: int) -> None:
        self.ports, self.actor = ports, actor
        self._room = self._most = room
        self._forget()

    def _forget(self) -> None:
        self.agents = DataLoader(self._records(RecordType.AGENT))
        self.templates = DataLoader(self._records(RecordType.TEMPLATE))
        self.people = DataLoader(self._records(RecordType.PERSON))
        self.workspaces = DataLoader(self._workspaces)
        self.pins = DataLoader(self._pins)
        self.overrides = DataLoader(self._overrides)
        self.newest_runs = DataLoader(self._newest_runs)
        self.offers = DataLoader(self._offers)
        self.followers = DataLoader(self._followers)
        self.versions = DataLoader(self._versions)
        self._blobs = DataLoader(self._bytes)
        self._tokens = DataLoader(self._counted)
        self._frozen = DataLoader(self._frozen_bytes)

    def must(self, permission: Permission) -> None:
        self.actor.require(permission)

    def begin(self, permission: Permission) -> None:
        """The same before something is changed, after which nothing read before need be true."""
        self.actor.require(permission)
        self._forget()

    def agent(self, record: Record) -> Agent:
        """As it is shown; whoever asks for it again is not asked to wait."""
        self.agents.prime(record.id, record)
        return Agent.of(record)

    async def bytes_of(self, what: str, blob: Blob) -> bytes:
        """Stored bytes. Raises Unreadable, by the name that is given, or TooLarge."""
        self._take(what, blob)
        try:
            return await self._blobs.load((blob.digest, blob.size, blob.storage_ref))
        except CorruptContent as problem:
            raise UnreadableFile(what, problem) from problem

    async def tokens_of(self, what: str, blob: Blob) -> int:
        """How long stored bytes are for a model. Raises as `bytes_of` does."""
        try:
            return await self._tokens.load((blob.digest, blob.size, blob.storage_ref))
        except CorruptContent as problem:
            raise UnreadableFile(what, problem) from problem

    async def frozen(self, file: File) -> bytes:
        """The bytes of a file as its run reads it. Raises as `bytes_of` does."""
        self._take(file.path, file.shown.blob)
        try:
            return await self._frozen.load(file)
        except CorruptContent as problem:
            raise UnreadableFile(file.path, problem) from problem

    def _take(self, what: str, blob: Blob) -> None:
        """Make sure, before they are read, that one answer does not carry more than it may."""
        if blob.size > self._room:
            said = f"{what} is left out: an answer carries {self._most} bytes of contents"
            raise WorkspaceTooLarge(said, limit="bytes", max=self._most)
        self._room -= blob.size

    def _records(
        self, record_type: RecordType
    ) -> Callable[[Sequence[str]], Awaitable[Sequence[Record | Exception | None]]]:
        async def fetch(ids: Sequence[str]) -> Sequence[Record | Exception | None]:
            return await self.ports.records.get(self.actor.tenant, record_type, ids)

        return fetch

    async def _workspaces(
        self, asked: Sequence[tuple[Stack, str]]
    ) -> Sequence[Workspace | Exception]:
        found: dict[tuple[Stack, str], Workspace | Exception] = {}
        for prefix in dict.fromkeys(prefix for _, prefix in asked):
            stacks = [stack for stack, wanted in asked if wanted == prefix]
            shown = await overview.workspaces(self.ports, stacks, prefix)
            for stack, workspace in zip(stacks, shown, strict=True):
                found[stack, prefix] = workspace or NotFound("there is no such agent any more")
        return [found[one] for one in asked]

    async def _pins(self, ids: Sequence[str]) -> Sequence[tuple[PinStatus, ...] | Exception]:
        known = {one.id: one for one in await self.agents.many(ids) if one}
        standings = await pins.pin_statuses(self.ports, self.actor, list(known.values()))
        found = dict(zip(known, standings, strict=True))
        return [found[id] if id in found else NotFound("there is no such agent") for id in ids]

    async def _overrides(self, ids: Sequence[str]) -> Sequence[int | Exception]:
        known = {one.id: one for one in await self.agents.many(ids) if one}
        counts = await overview.overrides(self.ports, self.actor, list(known.values()))
        found = dict(zip(known, counts, strict=True))
        return [found[id] if id in found else NotFound("there is no such agent") for id in ids]

    async def _newest_runs(self, ids: Sequence[str]) -> Sequence[Run | Exception | None]:
        return await overview.newest_runs(self.ports, self.actor, ids)

    async def _offers(self, ids: Sequence[str]) -> Sequence[tuple[PinOffer, ...] | Exception]:
        return await overview.offers(self.ports, self.actor, ids)

    async def _followers(self, ids: Sequence[str]) -> Sequence[int | Exception]:
        return await overview.followers(self.ports, self.actor.tenant, ids)

    async def _bytes(self, keys: Sequence[BlobKey]) -> Sequence[bytes | Exception]:
        blobs = [Blob(digest, size, ref) for digest, size, ref in keys]
        found = await contents_of(self.ports, blobs)
        return [found[blob.digest] for blob in blobs]

    async def _counted(self, keys: Sequence[BlobKey]) -> Sequence[int | Exception]:
        """Each content once; as with those that are shown, not more of them than one answer may."""
        blobs = [Blob(digest, size, ref) for digest, size, ref in keys]
        refused: dict[Digest, Exception] = {}
        for blob in blobs:
            try:
                self._take("the count", blob)
            except WorkspaceTooLarge as problem:
                refused[blob.digest] = problem
        counted = await counts_of(self.ports, [one for one in blobs if one.digest not in refused])
        return [refused.get(one.digest) or counted[one.digest] for one in blobs]

    async def _versions(
        self, asks: Sequence[tuple[Scope, Path, int]]
    ) -> Sequence[Version | Exception | None]:
        return await self.ports.trees.versions(asks)

    async def _frozen_bytes(self, asked: Sequence[File]) -> Sequence[bytes | Exception]:
        found: dict[int, bytes | Exception] = {}
        for run in {file.run.id: file.run for file in asked if file.run}.values():
            some = [file for file in asked if file.run and file.run.id == run.id]
            seen = Workspace({file.shown.path: file.shown for file in some})
            try:
                contents = await runs.contents(self.ports, run, seen)
            except NotFound as gone:
                found |= {id(file): gone for file in some}
                continue
            for file in some:
                path = file.shown.path
                failed = contents.failed.get(path)
                found[id(file)] = CorruptContent(failed) if failed else contents.found[path]
        return [found[id(file)] for file in asked]


Info: TypeAlias = GraphQLResolveInfo[ResolverContext]
"""What every resolver is told beside its source and arguments."""
