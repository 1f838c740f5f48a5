"""Whole worlds for tests of what stands on the ports: every port real, only the time is ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path as File
from typing import Any, Final

from tests.support.services import files

from carrel.adapters.aes_vault import AesGcmVault
from carrel.adapters.git import GitDirectory
from carrel.adapters.memory import MemoryStore
from carrel.adapters.sqlite import open_store
from carrel.adapters.system_clock import SystemClock
from carrel.adapters.tokenizers.estimate import EstimateTokens
from carrel.core.identifiers import TimestampMs
from carrel.core.webhooks import PostResult
from carrel.ports import Ports


class TravelClock(SystemClock):
    """The machine's clock, some milliseconds ahead where a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> TimestampMs:
        return super().now() + self.ahead


class Nowhere:
    """A Post in a world without a network."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        return PostResult(None, "there is no network here")

    async def refusal_reason(self, url: str) -> str | None:
        return None


class Unhurried:
    """A port whose every verb lets others go first, so that rivals meet in dictionaries too."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._port, name)
        if not callable(verb):
            return verb

        async def later(*args: Any, **more: Any) -> Any:
            await asyncio.sleep(0)
            return await verb(*args, **more)

        return later


def world_of(store: Any, clock: SystemClock | None = None, directory: File | None = None) -> Ports:
    """A world around a store, with git where there is a directory for it."""
    return Ports(
        trees=store.trees,
        blobs=store.blobs,
        records=store.records,
        runs=store.runs,
        events=store.events,
        idempotency=store.idempotency,
        deliveries=store.deliveries,
        sessions=store.sessions,
        recalls=store.recalls,
        vault=AesGcmVault(bytes(32)),
        webhook_sender=Nowhere(),
        clock=clock or TravelClock(),
        tokens=EstimateTokens(),
        repositories=GitDirectory(directory / "git") if directory else None,
    )


@asynccontextmanager
async def memory(directory: File) -> AsyncIterator[Ports]:
    store = MemoryStore()
    timed: Any = type("Ports", (), {name: Unhurried(port) for name, port in vars(store).items()})
    yield world_of(timed, directory=directory)


@asynccontextmanager
async def sqlite(directory: File) -> AsyncIterator[Ports]:
    async with open_store(files.fresh(directory / "carrel.db")) as store:
        yield world_of(store, directory=directory)


WORLDS: Final[Mapping[str, Callable[[File], AbstractAsyncContextManager[Ports]]]] = {
    "memory": memory,
    "sqlite": sqlite,
}


def travel(ports: Ports, milliseconds: int) -> None:
    """Let that much time pass."""
    clock = ports.clock
    assert isinstance(clock, TravelClock)
    clock.ahead += milliseconds
