"""The local provider of sandboxes, loaded and tested for its first command or when a server starts.

Most who open a store run none, and what isolates on a machine takes a while to find out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from carrel.ports import Ports
from carrel.ports.sandbox import BackgroundJob, CommandResult, CommandSpec, Fetch, ResourceLimits
from carrel.settings import Settings

if TYPE_CHECKING:
    from carrel.adapters.sandbox.local import LocalSandbox

LOCAL: Final = "local"


async def isolation_report(ports: Ports) -> dict[str, Any]:
    """What isolates commands here and what is missing, tried now."""
    local = ports.sandboxes.get(LOCAL)
    if not isinstance(local, LazyLocalSandbox):
        return {}
    return {"tier": await local.ready(), "lacking": list(local.lacking)}


class LazyLocalSandbox:
    """Use it as a context, so that nothing stays behind."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: LocalSandbox | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._made is not None:
            await self._made.close()

    @property
    def tier(self) -> str:
        return self._made.tier if self._made else "untested"

    @property
    def lacking(self) -> tuple[str, ...]:
        """What is missing for stronger walls, in words."""
        return self._made.lacking if self._made else ()

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        return self._sandbox().unsupported_reason(bounds, persistent=persistent)

    @asynccontextmanager
    async def run(self, order: CommandSpec, fetch: Fetch) -> AsyncIterator[CommandResult]:
        async with self._sandbox().run(order, fetch) as ran:
            yield ran

    async def start(self, order: CommandSpec, fetch: Fetch) -> None:
        await self._sandbox().start(order, fetch)

    async def job(self, reservation: str, id: str) -> BackgroundJob | None:
        return await self._sandbox().job(reservation, id)

    async def stop(self, reservation: str, id: str) -> BackgroundJob | None:
        return await self._sandbox().stop(reservation, id)

    async def delete_job(self, reservation: str, id: str) -> None:
        await self._sandbox().delete_job(reservation, id)

    async def release(self, reservation: str) -> None:
        await self._sandbox().release(reservation)

    async def ready(self) -> str:
        """Try the walls, if nobody has; gives the tier."""
        return (await self._sandbox().ready()).tier

    def _sandbox(self) -> LocalSandbox:
        if self._made is None:
            from carrel.adapters.sandbox.local import LocalSandbox  # noqa: PLC0415 - see above
            from carrel.adapters.sandbox.local.self_test import SandboxSettings  # noqa: PLC0415 - see above

            settings = self._settings
            wishes = SandboxSettings(
                tier=settings.sandbox,
                uid=settings.sandbox_uid,
                program=settings.sandbox_bwrap,
                network=settings.sandbox_network,
                alone=settings.workers == 1,
            )
            self._made = LocalSandbox(settings.sandboxes, wishes)
        return self._made
