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

from carrel.adapters.sandbox.remote import Machine, Place, Unreachable, course
from carrel.adapters.sandbox.remote.cleanup import called_off, put_away, to_its_end
from carrel.adapters.sandbox.remote.options import chosen, keeps_none, too_much_memory
from carrel.adapters.sandbox.remote.shell_machine import Boxed
from carrel.ports.sandbox import Bounds, Fetch, Order, Ran, Refused

_PLACE: Final = Place(root="/tmp/carrel")
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

    def refuses(self, bounds: Bounds, *, persistent: bool = False) -> str | None:
        return too_much_memory("e2b", self._account.memory_mb, bounds) or keeps_none(
            "e2b", persistent
        )

    def run(self, order: Order, fetch: Fetch) -> AbstractAsyncContextManager[Ran]:
        return course(order, fetch, self._opened)

    @asynccontextmanager
    async def _opened(self, order: Order) -> AsyncIterator[Machine]:
        template = chosen(order, "template", self._account.templates)
        if why := self.refuses(order.bounds):
            raise Refused(why)
        made: list[AsyncSandbox] = []
        try:
            await to_its_end(self._make(order, template, made))
            with _told_apart():
                has = (await called_off(made[0].get_info())).memory_mb
            if why := too_much_memory("e2b", has, order.bounds):
                raise Refused(why)
            yield Boxed(VirtualMachine(made[0], order.bounds.seconds), _PLACE)
        finally:
            for sandbox in made:
                await put_away(lambda one=sandbox: _kill(one))  # type: ignore[misc]  # no cell

    async def _make(self, order: Order, template: str, made: list[AsyncSandbox]) -> None:
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
        raise Unreachable(f"E2B did not do it: {type(problem).__name__}") from problem


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
            await called_off(self._sandbox.files.write(path, content))

    async def read(self, path: str) -> AsyncIterator[bytes]:
        with _told_apart():
            try:
                parts = await called_off(self._sandbox.files.read(path, format="stream"))
                while (part := await called_off(_next_of(parts))) is not None:
                    yield part
            except NotFoundException:
                return

    async def call(self, line: str) -> str:
        with _told_apart():
            run = self._sandbox.commands.run(line, timeout=self._seconds + _GRACE)
            return (await called_off(run)).stdout
