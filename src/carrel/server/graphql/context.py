"""Context of one GraphQL request: caller, permissions and data loaders."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from graphql import GraphQLResolveInfo

from carrel.actions.agents import overview
from carrel.actions.agents.overview import PinOffer
from carrel.actions.blob_contents import count_tokens, load_contents
from carrel.actions.overlay import pin_reviews
from carrel.actions.runs import snapshots
from carrel.core.access import Actor, Permission
from carrel.core.agents.private_access import AgentAccess, require_visible
from carrel.core.errors import NotFound, WorkspaceTooLarge
from carrel.core.identifiers import Digest, Path, Scope, Stack
from carrel.core.overlay.compose import Workspace
from carrel.core.overlay.pins import PinStatus
from carrel.core.runs import Run
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Version
from carrel.core.store.record import Record, RecordType
from carrel.ports import CorruptContent, Ports
from carrel.server.graphql.batch_loader import BatchLoader
from carrel.server.graphql.errors import UnreadableFile
from carrel.server.graphql.file_types import FileType
from carrel.server.graphql.types import AgentType

BlobKey: TypeAlias = tuple[Digest, int, object]


class ResolverContext:
    """Context of all resolvers of one request; its loaders cache within the request."""

    def __init__(self, ports: Ports, actor: Actor, max_content_bytes: int) -> None:
        self.ports, self.actor = ports, actor
        self._remaining_bytes = self._max_content_bytes = max_content_bytes
        self._reset_loaders()

    def _reset_loaders(self) -> None:
        self.agents = BatchLoader(self._records(RecordType.AGENT))
        self.templates = BatchLoader(self._records(RecordType.TEMPLATE))
        self.people = BatchLoader(self._records(RecordType.PERSON))
        self.workspaces = BatchLoader(self._workspaces)
        self.pins = BatchLoader(self._pins)
        self.overrides = BatchLoader(self._overrides)
        self.newest_runs = BatchLoader(self._newest_runs)
        self.offers = BatchLoader(self._offers)
        self.followers = BatchLoader(self._followers)
        self.versions = BatchLoader(self._versions)
        self._blobs = BatchLoader(self._load_blobs)
        self._tokens = BatchLoader(self._load_token_counts)
        self._run_contents = BatchLoader(self._load_run_contents)

    def require(self, permission: Permission) -> None:
        self.actor.require(permission)

    def opens(self, agent: Record) -> bool:
        """Whether the caller may open what is private to an agent. Raises NotFound."""
        return require_visible(self.actor, agent) is AgentAccess.FULL

    def begin_mutation(self, permission: Permission) -> None:
        """Require the permission and drop everything cached before the mutation."""
        self.actor.require(permission)
        self._reset_loaders()

    def agent_from_record(self, record: Record) -> AgentType:
        """Agent type of a record; also primes the agent loader."""
        self.agents.prime(record.id, record)
        return AgentType.from_record(record)

    async def read_bytes(self, name: str, blob: Blob) -> bytes:
        """Stored bytes. Raises UnreadableFile with this name, or WorkspaceTooLarge."""
        self._reserve_bytes(name, blob)
        try:
            return await self._blobs.load((blob.digest, blob.size, blob.storage_ref))
        except CorruptContent as error:
            raise UnreadableFile(name, error) from error

    async def count_tokens(self, name: str, blob: Blob) -> int:
        """Token count of stored bytes. Raises like `read_bytes`."""
        try:
            return await self._tokens.load((blob.digest, blob.size, blob.storage_ref))
        except CorruptContent as error:
            raise UnreadableFile(name, error) from error

    async def read_run_file(self, file: FileType) -> bytes:
        """Bytes of a file in its run's snapshot. Raises like `read_bytes`."""
        self._reserve_bytes(file.path, file.composed.blob)
        try:
            return await self._run_contents.load(file)
        except CorruptContent as error:
            raise UnreadableFile(file.path, error) from error

    def _reserve_bytes(self, name: str, blob: Blob) -> None:
        """Count a blob against the response limit. Raises WorkspaceTooLarge."""
        if blob.size > self._remaining_bytes:
            limit = self._max_content_bytes
            message = f"{name} is omitted: a response has at most {limit} bytes of contents"
            raise WorkspaceTooLarge(message, limit="bytes", max=self._max_content_bytes)
        self._remaining_bytes -= blob.size

    def _records(
        self, record_type: RecordType
    ) -> Callable[[Sequence[str]], Awaitable[Sequence[Record | Exception | None]]]:
        async def fetch(ids: Sequence[str]) -> Sequence[Record | Exception | None]:
            return await self.ports.records.get(self.actor.tenant, record_type, ids)

        return fetch

    async def _workspaces(
        self, keys: Sequence[tuple[Stack, str]]
    ) -> Sequence[Workspace | Exception]:
        by_key: dict[tuple[Stack, str], Workspace | Exception] = {}
        for prefix in dict.fromkeys(prefix for _, prefix in keys):
            stacks = [stack for stack, key_prefix in keys if key_prefix == prefix]
            workspaces = await overview.load_workspaces(self.ports, stacks, prefix)
            for stack, workspace in zip(stacks, workspaces, strict=True):
                by_key[stack, prefix] = workspace or NotFound("the agent no longer exists")
        return [by_key[key] for key in keys]

    async def _pins(self, ids: Sequence[str]) -> Sequence[tuple[PinStatus, ...] | Exception]:
        agents_by_id = {agent.id: agent for agent in await self.agents.load_many(ids) if agent}
        statuses = await pin_reviews.load_pin_statuses(
            self.ports, self.actor, list(agents_by_id.values())
        )
        by_id = dict(zip(agents_by_id, statuses, strict=True))
        return [by_id[id] if id in by_id else NotFound("no such agent") for id in ids]

    async def _overrides(self, ids: Sequence[str]) -> Sequence[int | Exception]:
        agents_by_id = {agent.id: agent for agent in await self.agents.load_many(ids) if agent}
        counts = await overview.count_overrides(self.ports, self.actor, list(agents_by_id.values()))
        by_id = dict(zip(agents_by_id, counts, strict=True))
        return [by_id[id] if id in by_id else NotFound("no such agent") for id in ids]

    async def _newest_runs(self, ids: Sequence[str]) -> Sequence[Run | Exception | None]:
        agents_by_id = {agent.id: agent for agent in await self.agents.load_many(ids) if agent}
        newest = await overview.find_newest_runs(
            self.ports, self.actor, list(agents_by_id.values())
        )
        by_id = dict(zip(agents_by_id, newest, strict=True))
        return [by_id.get(id) for id in ids]

    async def _offers(self, ids: Sequence[str]) -> Sequence[tuple[PinOffer, ...] | Exception]:
        return await overview.list_pin_offers(self.ports, self.actor, ids)

    async def _followers(self, ids: Sequence[str]) -> Sequence[int | Exception]:
        return await overview.count_followers(self.ports, self.actor.tenant, ids)

    async def _load_blobs(self, keys: Sequence[BlobKey]) -> Sequence[bytes | Exception]:
        blobs = [Blob(digest, size, ref) for digest, size, ref in keys]
        contents = await load_contents(self.ports, blobs)
        return [contents[blob.digest] for blob in blobs]

    async def _load_token_counts(self, keys: Sequence[BlobKey]) -> Sequence[int | Exception]:
        """Token counts; the contents count against the response limit."""
        blobs = [Blob(digest, size, ref) for digest, size, ref in keys]
        refused: dict[Digest, Exception] = {}
        for blob in blobs:
            try:
                self._reserve_bytes("the token count", blob)
            except WorkspaceTooLarge as error:
                refused[blob.digest] = error
        counts = await count_tokens(
            self.ports, [item for item in blobs if item.digest not in refused]
        )
        return [refused.get(item.digest) or counts[item.digest] for item in blobs]

    async def _versions(
        self, keys: Sequence[tuple[Scope, Path, int]]
    ) -> Sequence[Version | Exception | None]:
        return await self.ports.trees.versions(keys)

    async def _load_run_contents(self, files: Sequence[FileType]) -> Sequence[bytes | Exception]:
        by_file: dict[int, bytes | Exception] = {}
        for run in {file.run.id: file.run for file in files if file.run}.values():
            run_files = [file for file in files if file.run and file.run.id == run.id]
            workspace = Workspace({file.composed.path: file.composed for file in run_files})
            try:
                contents = await snapshots.read_contents(self.ports, run, workspace)
            except NotFound as error:
                by_file |= {id(file): error for file in run_files}
                continue
            for file in run_files:
                path = file.composed.path
                failed = contents.failed.get(path)
                by_file[id(file)] = CorruptContent(failed) if failed else contents.contents[path]
        return [by_file[id(file)] for file in files]


Info: TypeAlias = GraphQLResolveInfo[ResolverContext]
"""Resolver info with the ResolverContext."""
