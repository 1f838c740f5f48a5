"""Sandbox provider over E2B: one virtual machine per command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Final, Literal

import httpx
from e2b import AsyncSandbox
from e2b.exceptions import (
    AuthenticationException,
    NotFoundException,
    SandboxException,
    ServiceBusyException,
)
from msgspec import Struct

from carrel.adapters.sandbox.remote import (
    ProviderUnreachable,
    RemoteMachine,
    RemotePaths,
    run_remotely,
)
from carrel.adapters.sandbox.remote.cleanup import cancel_promptly, dispose, shield_cleanup
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
"""How long a machine outlives its command if the server dies."""
_GRACE_SECONDS: Final = 60


class E2BAccount(Struct, frozen=True):
    """E2B credentials and the templates that commands may use."""

    api_key: str
    templates: tuple[str, ...] = ("base",)
    """Templates that a sandbox may choose; the first is the default."""
    memory_mb: int = 512
    """Memory of machines of these templates."""
    domain: str = ""
    api_url: str = ""
    sandbox_url: str = ""
    http_version: Literal["1.1", "2"] = "2"


class E2BSandbox:
    """Sandbox provider that runs commands in E2B.

    A script inside limits time, processes and output; the template limits memory.
    """

    tier = "e2b"

    def __init__(self, account: E2BAccount) -> None:
        self._account = account

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        return memory_limit_reason("e2b", self._account.memory_mb, limits) or refuse_persistent(
            "e2b", persistent
        )

    def run(
        self, spec: CommandSpec, blobs: BlobReader
    ) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(spec, blobs, self._open_machine)

    @asynccontextmanager
    async def _open_machine(self, spec: CommandSpec) -> AsyncIterator[RemoteMachine]:
        template = choose_option(spec, "template", self._account.templates)
        if reason := self.unsupported_reason(spec.limits):
            raise SandboxUnavailable(reason)
        created: list[AsyncSandbox] = []
        try:
            await shield_cleanup(self._create(spec, template, created))
            with _as_unreachable():
                machine_mb = (await cancel_promptly(created[0].get_info())).memory_mb
            if reason := memory_limit_reason("e2b", machine_mb, spec.limits):
                raise SandboxUnavailable(reason)
            yield ShellMachine(E2BTransport(created[0], spec.limits.seconds), _PATHS)
        finally:
            for sandbox in created:
                await dispose(lambda item=sandbox: _kill(item))  # type: ignore[misc]  # bind now

    async def _create(self, spec: CommandSpec, template: str, created: list[AsyncSandbox]) -> None:
        """Create the machine and append it to a list, which survives cancellation."""
        with _as_unreachable():
            created.append(
                await AsyncSandbox.create(
                    template,
                    timeout=spec.limits.seconds + _ORPHAN_SECONDS,
                    metadata={"carrel-order": spec.id},
                    allow_internet_access=spec.limits.network,
                    **self._connection(),
                )
            )

    def _connection(self) -> dict[str, Any]:
        account = self._account
        urls = {
            "domain": account.domain,
            "api_url": account.api_url,
            "sandbox_url": account.sandbox_url,
        }
        configured = {name: value for name, value in urls.items() if value}
        return {"api_key": account.api_key, "http_version": account.http_version, **configured}


@contextmanager
def _as_unreachable() -> Iterator[None]:
    try:
        yield
    except (
        AuthenticationException,
        SandboxException,
        ServiceBusyException,
        httpx.HTTPError,
        OSError,
    ) as problem:
        raise ProviderUnreachable(f"E2B request failed: {type(problem).__name__}") from problem


async def _kill(sandbox: AsyncSandbox) -> None:
    with _as_unreachable():
        await sandbox.kill()


async def _next_part(parts: AsyncIterator[bytes]) -> bytes | None:
    return await anext(parts, None)


class E2BTransport:
    """ShellTransport over one E2B machine."""

    def __init__(self, sandbox: AsyncSandbox, seconds: int) -> None:
        self._sandbox, self._seconds = sandbox, seconds

    async def write(self, path: str, content: bytes) -> None:
        with _as_unreachable():
            await cancel_promptly(self._sandbox.files.write(path, content))

    async def read(self, path: str) -> AsyncIterator[bytes]:
        with _as_unreachable():
            try:
                parts = await cancel_promptly(self._sandbox.files.read(path, format="stream"))
                while (part := await cancel_promptly(_next_part(parts))) is not None:
                    yield part
            except NotFoundException:
                return

    async def call(self, line: str) -> str:
        with _as_unreachable():
            run = self._sandbox.commands.run(line, timeout=self._seconds + _GRACE_SECONDS)
            return (await cancel_promptly(run)).stdout
