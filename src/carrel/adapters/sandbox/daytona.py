"""Sandbox provider over Daytona's REST API: one sandbox per command."""

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
from carrel.adapters.sandbox.remote.options import (
    choose_option,
    memory_limit_reason,
    refuse_persistent,
)
from carrel.adapters.sandbox.remote.shell_machine import ShellMachine
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    ResourceLimits,
    SandboxUnavailable,
)

_PATHS: Final = RemotePaths(root="/tmp/carrel")
_ORPHAN_SECONDS: Final = 300
"""How long a sandbox outlives its command if the server dies."""
_API_TIMEOUT_SECONDS: Final = 60
_GRACE_SECONDS: Final = 60
_TERMINAL_STATES: Final = {
    "error",
    "build_failed",
    "destroyed",
    "destroying",
    "stopped",
    "archived",
}
ResponseType = TypeVar("ResponseType")


class DaytonaAccount(Struct, frozen=True):
    """Daytona credentials and the snapshots that commands may use."""

    api_key: str
    api_url: str = "https://app.daytona.io/api"
    snapshots: tuple[str, ...] = ("",)
    """Snapshots that a sandbox may choose; the first is the default.

    Empty means the account's own default.
    """
    memory_mb: int = 1024
    """Memory of sandboxes of these snapshots."""
    target: str = ""
    start_seconds: int = 120


class DaytonaSandboxDetails(Struct, frozen=True, rename="camel"):
    """A sandbox as Daytona's API describes it."""

    id: str
    state: str = "unknown"
    toolbox_proxy_url: str = ""
    network_block_all: bool = False
    memory: float = 0
    """GiB."""


class DaytonaCommandOutput(Struct, frozen=True):
    result: str = ""


class DaytonaSandbox:
    """A script inside limits time, processes and output; the snapshot limits memory."""

    tier = "daytona"

    def __init__(self, account: DaytonaAccount) -> None:
        self._account = account

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        return memory_limit_reason("daytona", self._account.memory_mb, limits) or refuse_persistent(
            "daytona", persistent
        )

    def run(
        self, spec: CommandSpec, blobs: BlobReader
    ) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(spec, blobs, self._open_machine)

    @asynccontextmanager
    async def _open_machine(self, spec: CommandSpec) -> AsyncIterator[RemoteMachine]:
        snapshot = choose_option(spec, "snapshot", self._account.snapshots)
        if reason := self.unsupported_reason(spec.limits):
            raise SandboxUnavailable(reason)
        headers = {"Authorization": f"Bearer {self._account.api_key}"}
        client = httpx.AsyncClient(headers=headers, timeout=_API_TIMEOUT_SECONDS, verify=_tls())
        async with client:
            api = DaytonaApi(client, self._account.api_url.rstrip("/"))
            created: list[DaytonaSandboxDetails] = []
            try:
                request = _create_request(self._account, spec, snapshot)
                await shield_cleanup(api.create(request, created))
                sandbox = await api.wait_until_started(created[0], self._account.start_seconds)
                _check_sandbox(sandbox, spec.limits)
                toolbox = f"{sandbox.toolbox_proxy_url.rstrip('/')}/{sandbox.id}"
                yield ShellMachine(DaytonaTransport(client, toolbox, spec.limits.seconds), _PATHS)
            finally:
                if created:
                    await dispose(lambda: api.remove(created[0].id))


def _create_request(account: DaytonaAccount, spec: CommandSpec, snapshot: str) -> dict[str, Any]:
    request: dict[str, Any] = {
        "labels": {"carrel-order": spec.id},
        "public": False,
        "networkBlockAll": not spec.limits.network,
        "autoStopInterval": (spec.limits.seconds + _ORPHAN_SECONDS) // 60 + 1,
        "autoDeleteInterval": 0,
    }
    optional = {"snapshot": snapshot, "target": account.target}
    return request | {name: value for name, value in optional.items() if value}


def _check_sandbox(sandbox: DaytonaSandboxDetails, limits: ResourceLimits) -> None:
    """Check that the sandbox has the requested limits. Raises SandboxUnavailable."""
    if not limits.network and not sandbox.network_block_all:
        raise SandboxUnavailable("daytona did not block the network")
    if reason := memory_limit_reason("daytona", int(sandbox.memory * 1024), limits):
        raise SandboxUnavailable(reason)


@cache
def _tls() -> ssl.SSLContext:
    """Create the TLS context once: loading all certificates is slow."""
    return httpx.create_ssl_context()


@contextmanager
def _as_unreachable() -> Iterator[None]:
    try:
        yield
    except httpx.HTTPStatusError as problem:
        raise ProviderUnreachable(
            f"Daytona request failed: {problem.response.status_code}"
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        raise ProviderUnreachable(f"Daytona request failed: {type(problem).__name__}") from problem


def _decode(response: httpx.Response, response_type: type[ResponseType]) -> ResponseType:
    response.raise_for_status()
    try:
        return msgspec.json.decode(response.content, type=response_type)
    except msgspec.DecodeError:
        raise ProviderUnreachable("invalid response from Daytona") from None


class DaytonaApi:
    """Creates and deletes sandboxes."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client, self._url = client, url

    async def create(self, request: dict[str, Any], created: list[DaytonaSandboxDetails]) -> None:
        """Create the sandbox and append it to a list, which survives cancellation."""
        with _as_unreachable():
            created.append(
                _decode(
                    await self._client.post(f"{self._url}/sandbox", json=request),
                    DaytonaSandboxDetails,
                )
            )

    async def wait_until_started(
        self, sandbox: DaytonaSandboxDetails, seconds: int
    ) -> DaytonaSandboxDetails:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, 0.05
        while sandbox.state != "started" or not sandbox.toolbox_proxy_url:
            if sandbox.state in _TERMINAL_STATES or loop.time() > deadline:
                raise ProviderUnreachable(f"the sandbox did not start: {sandbox.state[:40]!a}")
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
            with _as_unreachable():
                sandbox = _decode(
                    await self._client.get(f"{self._url}/sandbox/{sandbox.id}"),
                    DaytonaSandboxDetails,
                )
        return sandbox

    async def remove(self, id: str) -> None:
        with _as_unreachable():
            response = await self._client.delete(f"{self._url}/sandbox/{id}")
            if response.status_code != httpx.codes.NOT_FOUND:
                response.raise_for_status()


class DaytonaTransport:
    """ShellTransport over one Daytona sandbox."""

    def __init__(self, client: httpx.AsyncClient, url: str, seconds: int) -> None:
        self._client, self._url, self._seconds = client, url, seconds

    async def write(self, path: str, content: bytes) -> None:
        with _as_unreachable():
            response = await self._client.post(
                f"{self._url}/files/upload", params={"path": path}, files={"file": content}
            )
            response.raise_for_status()

    async def read(self, path: str) -> AsyncIterator[bytes]:
        url = f"{self._url}/files/download"
        with _as_unreachable():
            async with self._client.stream("GET", url, params={"path": path}) as response:
                if response.status_code == httpx.codes.NOT_FOUND:
                    return
                response.raise_for_status()
                async for part in response.aiter_bytes():
                    yield part

    async def call(self, line: str) -> str:
        seconds = self._seconds + _GRACE_SECONDS
        with _as_unreachable():
            response = await self._client.post(
                f"{self._url}/process/execute",
                json={"command": line, "timeout": seconds},
                timeout=seconds + _API_TIMEOUT_SECONDS,
            )
            return _decode(response, DaytonaCommandOutput).result
