"""Local sandbox provider that is imported and tested on first use.

Most commands that open a store never run one, and the self-test takes time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from carrel.ports import Ports
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    BackgroundJob,
    CommandResult,
    CommandSpec,
    ResourceLimits,
)
from carrel.settings import Settings

if TYPE_CHECKING:
    from carrel.adapters.sandbox.local import LocalSandbox

LOCAL_PROVIDER: Final = "local"


async def isolation_report(ports: Ports) -> dict[str, Any]:
    """Return the isolation tier and the missing features, tested now."""
    local = ports.sandboxes.get(LOCAL_PROVIDER)
    if not isinstance(local, LazyLocalSandbox):
        return {}
    return {"tier": await local.ready(), "lacking": list(local.missing_features)}


class LazyLocalSandbox:
    """PersistentSandbox port. Use as an async context manager to end all instances."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._local_sandbox: LocalSandbox | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._local_sandbox is not None:
            await self._local_sandbox.close()

    @property
    def tier(self) -> str:
        return self._local_sandbox.tier if self._local_sandbox else "untested"

    @property
    def missing_features(self) -> tuple[str, ...]:
        """Isolation features missing on this machine, as text."""
        return self._local_sandbox.missing_features if self._local_sandbox else ()

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        return self._sandbox().unsupported_reason(limits, persistent=persistent)

    @asynccontextmanager
    async def run(self, spec: CommandSpec, blobs: BlobReader) -> AsyncIterator[CommandResult]:
        async with self._sandbox().run(spec, blobs) as result:
            yield result

    async def start(self, spec: CommandSpec, blobs: BlobReader) -> None:
        await self._sandbox().start(spec, blobs)

    async def get_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        return await self._sandbox().get_job(instance_key, id)

    async def stop_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        return await self._sandbox().stop_job(instance_key, id)

    async def delete_job(self, instance_key: str, id: str) -> None:
        await self._sandbox().delete_job(instance_key, id)

    async def release_instance(self, instance_key: str) -> None:
        await self._sandbox().release_instance(instance_key)

    async def clear_cache(self) -> None:
        if self._settings.sandboxes_directory.exists():
            await self._sandbox().clear_cache()

    async def ready(self) -> str:
        """Run the self-test on the first call; return the isolation tier."""
        return (await self._sandbox().ready()).tier

    def _sandbox(self) -> LocalSandbox:
        if self._local_sandbox is None:
            from carrel.adapters.sandbox.local import LocalSandbox  # noqa: PLC0415 - see above
            from carrel.adapters.sandbox.local.isolation import SandboxSettings  # noqa: PLC0415 - see above

            settings = self._settings
            sandbox_settings = SandboxSettings(
                tier=settings.sandbox,
                uid=settings.sandbox_uid,
                program=settings.sandbox_bwrap,
                network=settings.sandbox_network,
                is_single_process=settings.workers == 1,
            )
            self._local_sandbox = LocalSandbox(settings.sandboxes_directory, sandbox_settings)
        return self._local_sandbox
