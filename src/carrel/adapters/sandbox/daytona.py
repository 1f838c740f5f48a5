"""Commands in sandboxes of Daytona, over its REST API: one for each, deleted when it has ended."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cache
from typing import Any, Final, TypeVar

import httpx
import msgspec
from msgspec import Struct

from carrel.adapters.sandbox.remote import (
    ProviderUnreachable,
    RemoteMachine,
    RemotePaths,
    run_remotely,
)
from carrel.adapters.sandbox.remote.cleanup import dispose, shield_cleanup
from carrel.adapters.sandbox.remote.options import choose_option, refuse_persistent, too_much_memory
from carrel.adapters.sandbox.remote.shell_machine import ShellMachine
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    Fetch,
    ResourceLimits,
    SandboxUnavailable,
)

_PLACE: Final = RemotePaths(root="/tmp/carrel")
_SPARE_SECONDS: Final = 300
"""How long a sandbox outlives its command where the server is gone."""
_ANSWER_SECONDS: Final = 60
_GRACE: Final = 60
_DEAD: Final = {"error", "build_failed", "destroyed", "destroying", "stopped", "archived"}
Shape = TypeVar("Shape")


class DaytonaAccount(Struct, frozen=True):
    """Whose sandboxes, and of what."""

    api_key: str
    api_url: str = "https://app.daytona.io/api"
    snapshots: tuple[str, ...] = ("",)
    """Which a record may choose from; the first is meant where it chooses none, and the account's
    own default where that is empty."""
    memory_mb: int = 1024
    """What sandboxes of these snapshots have."""
    target: str = ""
    start_seconds: int = 120


class DaytonaSandboxDetails(Struct, frozen=True, rename="camel"):
    """A sandbox as Daytona tells of it."""

    id: str
    state: str = "unknown"
    toolbox_proxy_url: str = ""
    network_block_all: bool = False
    memory: float = 0
    """In GiB."""


class Executed(Struct, frozen=True):
    result: str = ""


class DaytonaSandbox:
    """Time, processes and output are bounded by a script within, memory by the snapshot."""

    tier = "daytona"

    def __init__(self, account: DaytonaAccount) -> None:
        self._account = account

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        return too_much_memory("daytona", self._account.memory_mb, bounds) or refuse_persistent(
            "daytona", persistent
        )

    def run(self, order: CommandSpec, fetch: Fetch) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(order, fetch, self._opened)

    @asynccontextmanager
    async def _opened(self, order: CommandSpec) -> AsyncIterator[RemoteMachine]:
        snapshot = choose_option(order, "snapshot", self._account.snapshots)
        if reason := self.unsupported_reason(order.bounds):
            raise SandboxUnavailable(reason)
        headers = {"Authorization": f"Bearer {self._account.api_key}"}
        client = httpx.AsyncClient(headers=headers, timeout=_ANSWER_SECONDS, verify=_tls())
        async with client:
            control = DaytonaApi(client, self._account.api_url.rstrip("/"))
            made: list[DaytonaSandboxDetails] = []
            try:
                asked = _asked(self._account, order, snapshot)
                await shield_cleanup(control.make(asked, made))
                one = await control.until_started(made[0], self._account.start_seconds)
                _check(one, order.bounds)
                toolbox = f"{one.toolbox_proxy_url.rstrip('/')}/{one.id}"
                yield ShellMachine(DaytonaMachine(client, toolbox, order.bounds.seconds), _PLACE)
            finally:
                if made:
                    await dispose(lambda: control.remove(made[0].id))


def _asked(account: DaytonaAccount, order: CommandSpec, snapshot: str) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "labels": {"carrel-order": order.id},
        "public": False,
        "networkBlockAll": not order.bounds.network,
        "autoStopInterval": (order.bounds.seconds + _SPARE_SECONDS) // 60 + 1,
        "autoDeleteInterval": 0,
    }
    chosen_ones = {"snapshot": snapshot, "target": account.target}
    return asked | {name: value for name, value in chosen_ones.items() if value}


def _check(made: DaytonaSandboxDetails, bounds: ResourceLimits) -> None:
    """What was asked for is not always what there is. Raises Refused."""
    if not bounds.network and not made.network_block_all:
        raise SandboxUnavailable("daytona did not block the network")
    if reason := too_much_memory("daytona", int(made.memory * 1024), bounds):
        raise SandboxUnavailable(reason)


@cache
def _tls() -> ssl.SSLContext:
    """Made once: to read all certificates takes longer than to ask for a sandbox."""
    return httpx.create_ssl_context()


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except httpx.HTTPStatusError as problem:
        raise ProviderUnreachable(
            f"Daytona did not do it: {problem.response.status_code}"
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        raise ProviderUnreachable(f"Daytona did not do it: {type(problem).__name__}") from problem


def _read(answer: httpx.Response, shape: type[Shape]) -> Shape:
    answer.raise_for_status()
    try:
        return msgspec.json.decode(answer.content, type=shape)
    except msgspec.DecodeError:
        raise ProviderUnreachable("Daytona told nothing that makes sense") from None


class DaytonaApi:
    """What makes sandboxes and deletes them."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client, self._url = client, url

    async def make(self, asked: dict[str, Any], made: list[DaytonaSandboxDetails]) -> None:
        """Into a list, so that it is known even where nobody waits for it any more."""
        with _told_apart():
            made.append(
                _read(
                    await self._client.post(f"{self._url}/sandbox", json=asked),
                    DaytonaSandboxDetails,
                )
            )

    async def until_started(
        self, made: DaytonaSandboxDetails, seconds: int
    ) -> DaytonaSandboxDetails:
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + seconds, 0.05
        while made.state != "started" or not made.toolbox_proxy_url:
            if made.state in _DEAD or loop.time() > end:
                raise ProviderUnreachable(f"the sandbox did not start: {made.state[:40]!a}")
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
            with _told_apart():
                made = _read(
                    await self._client.get(f"{self._url}/sandbox/{made.id}"), DaytonaSandboxDetails
                )
        return made

    async def remove(self, id: str) -> None:
        with _told_apart():
            answer = await self._client.delete(f"{self._url}/sandbox/{id}")
            if answer.status_code != httpx.codes.NOT_FOUND:
                answer.raise_for_status()


class DaytonaMachine:
    """One sandbox, by what it takes, runs and gives."""

    def __init__(self, client: httpx.AsyncClient, url: str, seconds: int) -> None:
        self._client, self._url, self._seconds = client, url, seconds

    async def write(self, path: str, content: bytes) -> None:
        with _told_apart():
            answer = await self._client.post(
                f"{self._url}/files/upload", params={"path": path}, files={"file": content}
            )
            answer.raise_for_status()

    async def read(self, path: str) -> AsyncIterator[bytes]:
        url = f"{self._url}/files/download"
        with _told_apart():
            async with self._client.stream("GET", url, params={"path": path}) as answer:
                if answer.status_code == httpx.codes.NOT_FOUND:
                    return
                answer.raise_for_status()
                async for part in answer.aiter_bytes():
                    yield part

    async def call(self, line: str) -> str:
        seconds = self._seconds + _GRACE
        with _told_apart():
            answer = await self._client.post(
                f"{self._url}/process/execute",
                json={"command": line, "timeout": seconds},
                timeout=seconds + _ANSWER_SECONDS,
            )
            return _read(answer, Executed).result
