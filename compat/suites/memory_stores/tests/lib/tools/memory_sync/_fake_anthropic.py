"""Replacement of the SDK's stub of a memory store: a live Carrel behind the same names.

`CARREL_URL` and `CARREL_TOKEN` name the server and a token with `tenant:admin`. Every request of
the code under test goes to that server through the SDK's own client. The tests name the store
`memstore_notes` and memories `mem:` and their path, so ids are translated both ways; what the tests
do to the server (hooks, a listing that breaks, a smaller limit) happens around the real requests.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import httpx2
from anthropic import Anthropic, APIStatusError, AsyncAnthropic

URL = os.environ["CARREL_URL"]
TOKEN = os.environ["CARREL_TOKEN"]
MAX_CONTENT_BYTES = 102_400
"""Limit of the protocol, which a test scales down."""


def _sha(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def _status_error(code: int) -> APIStatusError:
    request = httpx2.Request("POST", "https://api.example/v1/memory")
    return APIStatusError(
        f"status {code}", response=httpx2.Response(code, request=request), body=None
    )


class LiveFiles(MutableMapping[str, "str | None"]):
    """The memories of one store by path, read and written on the server at each access.

    Paths that the protocol refuses are kept here and listed beside the memories, since the tests
    need a server that lists them.
    """

    def __init__(self) -> None:
        self._client = Anthropic(base_url=URL, auth_token=TOKEN, max_retries=0)
        self.store = self._client.beta.memory_stores.create(name="notes").id
        self.illegal: dict[str, str] = {}

    def _listed(self, view: Any = "basic") -> Iterator[Any]:
        return iter(self._memories.list(self.store, view=view, limit=100))

    @property
    def _memories(self) -> Any:
        return self._client.beta.memory_stores.memories

    def find(self, path: str) -> Any:
        """Memory at a path, or None."""
        return next((item for item in self._listed() if item.path == f"/{path}"), None)

    def __getitem__(self, path: str) -> str | None:
        if path in self.illegal:
            return self.illegal[path]
        memory = self.find(path)
        if memory is None:
            raise KeyError(path)
        content: str = self._memories.retrieve(memory.id, memory_store_id=self.store).content
        return content

    def __setitem__(self, path: str, content: str | None) -> None:
        memory = self.find(path)
        if _is_illegal(path):
            self.illegal[path] = content or ""
        elif memory is None:
            self._memories.create(self.store, path=f"/{path}", content=content)
        else:
            self._memories.update(memory.id, memory_store_id=self.store, content=content or "")

    def __delitem__(self, path: str) -> None:
        memory = self.find(path)
        if memory is None:
            raise KeyError(path)
        self._memories.delete(memory.id, memory_store_id=self.store)

    def __iter__(self) -> Iterator[str]:
        yield from self.illegal
        yield from [item.path.removeprefix("/") for item in self._listed()]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


def _is_illegal(path: str) -> bool:
    return ".." in path.split("/")


class MemoryServer:
    """The test's view of one store: its memories, and the writes of the code under test."""

    def __init__(self, initial: Mapping[str, str | None]) -> None:
        self.files = LiveFiles()
        self.files.update(initial)
        self.received: list[tuple[Any, ...]] = []
        self.max_content_bytes: int | None = None
        self.retrieves: list[str] = []
        self.content_fetches: list[str] = []
        self.fetch_hook: Callable[[str], None] | None = None
        self.upload_hook: Callable[[str], Awaitable[None]] | None = None

    def write(self, path: str, content: str) -> None:
        self.files[path] = content

    def delete(self, path: str) -> None:
        del self.files[path]

    def scaled(self, content: str) -> str:
        """Content that exceeds the protocol's limit if it exceeds that of the test."""
        limit = self.max_content_bytes
        too_large = limit is not None and len(content.encode()) > limit
        return content.ljust(MAX_CONTENT_BYTES + 1) if too_large else content


def created(path: str, content: str) -> tuple[Any, ...]:
    return ("create", path, content)


def updated(path: str, content: str, *, was: str) -> tuple[Any, ...]:
    return ("update", path, content, _sha(was))


def deleted(path: str, *, was: str) -> tuple[Any, ...]:
    return ("delete", path, _sha(was))


class _Resource:
    """`client.beta.memory_stores.memories` of the SDK, over a live store."""

    def __init__(self, server: MemoryServer, *, noise: bool = False) -> None:
        self._server, self._noise = server, noise
        self._store = server.files.store
        self._ids: dict[str, str] = {}
        """Ids of memories by path, as they were last listed or created."""

    def _client(self) -> AsyncAnthropic:
        """A client of this event loop, without retries: a test counts the requests."""
        return AsyncAnthropic(base_url=URL, auth_token=TOKEN, max_retries=0)

    def _named(self, memory: Any) -> Any:
        """The memory with the id that the tests know."""
        path = memory.path.removeprefix("/")
        self._ids[path] = memory.id
        return memory.model_copy(update={"id": f"mem:{path}"})

    def _real_id(self, memory_id: str) -> str:
        path = memory_id.removeprefix("mem:")
        return self._ids.get(path, f"mem_{0:024x}")

    def list(self, memory_store_id: str, **options: Any) -> AsyncIterator[Any]:
        async def items() -> AsyncIterator[Any]:
            if self._noise:
                yield SimpleNamespace(type="memory_prefix", path="/projects/")
            if memory_store_id == "memstore_broken":
                yield _listed("/half.md", "partial", options.get("view"))
                raise RuntimeError("list exploded")
            for path, content in self._server.files.illegal.items():
                yield _listed(f"/{path}", content, options.get("view"))
            async with self._client() as client:
                async for item in client.beta.memory_stores.memories.list(self._store, **options):
                    yield self._named(item)

        return items()

    async def retrieve(self, memory_id: str, *, memory_store_id: str, **options: Any) -> Any:
        path = memory_id.removeprefix("mem:")
        self._server.content_fetches.append(path)
        if self._server.fetch_hook is not None:
            self._server.fetch_hook(path)
        async with self._client() as client:
            return self._named(
                await client.beta.memory_stores.memories.retrieve(
                    self._real_id(memory_id), memory_store_id=self._store, **options
                )
            )

    async def create(self, _memory_store_id: str, *, path: str, content: str) -> Any:
        bare = path.lstrip("/")
        if self._server.upload_hook is not None:
            await self._server.upload_hook(bare)
        self._server.received.append(created(bare, content))
        async with _completed(), self._client() as client:
            return self._named(
                await client.beta.memory_stores.memories.create(
                    self._store, path=path, content=self._server.scaled(content)
                )
            )

    async def update(
        self, memory_id: str, *, memory_store_id: str, content: str, precondition: Any
    ) -> Any:
        path = memory_id.removeprefix("mem:")
        if self._server.upload_hook is not None:
            await self._server.upload_hook(path)
        self._server.received.append(("update", path, content, precondition["content_sha256"]))
        async with _completed(), self._client() as client:
            return self._named(
                await client.beta.memory_stores.memories.update(
                    self._real_id(memory_id),
                    memory_store_id=self._store,
                    content=self._server.scaled(content),
                    precondition=precondition,
                )
            )

    async def delete(self, memory_id: str, *, memory_store_id: str, **options: Any) -> Any:
        path = memory_id.removeprefix("mem:")
        self._server.received.append(("delete", path, options.get("expected_content_sha256")))
        async with _completed(), self._client() as client:
            answer = await client.beta.memory_stores.memories.delete(
                self._real_id(memory_id), memory_store_id=self._store, **options
            )
        return answer.model_copy(update={"id": memory_id})


@asynccontextmanager
async def _completed() -> AsyncIterator[None]:
    """A write that the server has received, which the cancellation of a test does not undo."""
    with anyio.CancelScope(shield=True):
        yield


def _listed(path: str, content: str, view: str | None) -> Any:
    """A row of a listing that no server sends."""
    return SimpleNamespace(
        type="memory",
        id=f"mem:{path}",
        path=path,
        content=content if view == "full" else None,
        content_sha256=_sha(content),
    )


def _store_resource(name: str, access: str | None, mount_path: str | None) -> Any:
    return SimpleNamespace(
        type="memory_store",
        memory_store_id=f"memstore_{name}",
        mount_path=mount_path,
        name=name,
        access=access,
    )


def fake_anthropic(  # noqa: PLR0913 - as the tests call it
    initial: Mapping[str, str | None],
    *,
    access: str | None = None,
    broken_store: bool = False,
    broken_store_last: bool = False,
    no_stores: bool = False,
    mount_path: str | None = None,
    noise: bool = False,
) -> tuple[Any, MemoryServer]:
    """A client with one live store named `notes`, and the test's view of it.

    The session that names the stores is not part of the Memory Stores API, so it is made up.
    """
    server = MemoryServer(initial)
    broken = [_store_resource("broken", None, None)]
    resources = [] if no_stores else [_store_resource("notes", access, mount_path)]
    if noise:
        resources.insert(0, SimpleNamespace(type="file", file_id="file_1"))
    if broken_store:
        resources = broken + resources
    elif broken_store_last:
        resources += broken

    async def retrieve_session(session_id: str) -> Any:
        server.retrieves.append(session_id)
        agent = SimpleNamespace(skills=[])
        return SimpleNamespace(status="running", agent=agent, resources=resources)

    client = SimpleNamespace(
        beta=SimpleNamespace(
            sessions=SimpleNamespace(retrieve=retrieve_session),
            memory_stores=SimpleNamespace(memories=_Resource(server, noise=noise)),
        )
    )
    return client, server
