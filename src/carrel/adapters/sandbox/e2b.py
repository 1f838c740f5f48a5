"""Commands in sandboxes of E2B: a virtual machine for each, killed when it has ended."""

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
from carrel.adapters.sandbox.remote.cleanup import cancelled, dispose, shield_cleanup
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
"""How long a machine outlives its command where the server is gone."""
_GRACE: Final = 60


class E2BAccount(Struct, frozen=True):
    """Whose machines, and of what."""

    api_key: str
    templates: tuple[str, ...] = ("base",)
    """Which a record may choose from; the first is meant where it chooses none."""
    memory_mb: int = 512
    """What the machines of these templates have."""
    domain: str = ""
    api_url: str = ""
    sandbox_url: str = ""
    http_version: Literal["1.1", "2"] = "2"


class E2BSandbox:
    """Time, processes and output are bounded by a script within, memory by the template."""

    tier = "e2b"

    def __init__(self, account: E2BAccount) -> None:
        self._account = account

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        return too_much_memory("e2b", self._account.memory_mb, bounds) or refuse_persistent(
            "e2b", persistent
        )

    def run(self, order: CommandSpec, fetch: Fetch) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(order, fetch, self._opened)

    @asynccontextmanager
    async def _opened(self, order: CommandSpec) -> AsyncIterator[RemoteMachine]:
        template = choose_option(order, "template", self._account.templates)
        if reason := self.unsupported_reason(order.bounds):
            raise SandboxUnavailable(reason)
        made: list[AsyncSandbox] = []
        try:
            await shield_cleanup(self._make(order, template, made))
            with _told_apart():
                has = (await cancelled(made[0].get_info())).memory_mb
            if reason := too_much_memory("e2b", has, order.bounds):
                raise SandboxUnavailable(reason)
            yield ShellMachine(VirtualMachine(made[0], order.bounds.seconds), _PLACE)
        finally:
            for sandbox in made:
                await dispose(lambda one=sandbox: _kill(one))  # type: ignore[misc]  # no cell

    async def _make(self, order: CommandSpec, template: str, made: list[AsyncSandbox]) -> None:
        """Into a list, so that it is known even where nobody waits for it any more."""
        with _told_apart():
            made.append(
                await AsyncSandbox.create(
                    template,
                    timeout=order.bounds.seconds + _SPARE_SECONDS,
                    metadata={"carrel-order": order.id},
                    allow_internet_access=order.bounds.network,
                    **self._connection(),
                )
            )

    def _connection(self) -> dict[str, Any]:
        account = self._account
        given = {
            "domain": account.domain,
            "api_url": account.api_url,
            "sandbox_url": account.sandbox_url,
        }
        named = {name: value for name, value in given.items() if value}
        return {"api_key": account.api_key, "http_version": account.http_version, **named}


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except (
        AuthenticationException,
        SandboxException,
        ServiceBusyException,
        httpx.HTTPError,
        OSError,
    ) as problem:
        raise ProviderUnreachable(f"E2B did not do it: {type(problem).__name__}") from problem


async def _kill(sandbox: AsyncSandbox) -> None:
    with _told_apart():
        await sandbox.kill()


async def _next_of(parts: AsyncIterator[bytes]) -> bytes | None:
    return await anext(parts, None)


class VirtualMachine:
    """One machine, by what it takes, runs and gives."""

    def __init__(self, sandbox: AsyncSandbox, seconds: int) -> None:
        self._sandbox, self._seconds = sandbox, seconds

    async def write(self, path: str, content: bytes) -> None:
        with _told_apart():
            await cancelled(self._sandbox.files.write(path, content))

    async def read(self, path: str) -> AsyncIterator[bytes]:
        with _told_apart():
            try:
                parts = await cancelled(self._sandbox.files.read(path, format="stream"))
                while (part := await cancelled(_next_of(parts))) is not None:
                    yield part
            except NotFoundException:
                return

    async def call(self, line: str) -> str:
        with _told_apart():
            run = self._sandbox.commands.run(line, timeout=self._seconds + _GRACE)
            return (await cancelled(run)).stdout
