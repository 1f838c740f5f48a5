"""Ports over a temporary SQLite store, for tests of everything above the ports."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path as File
from types import SimpleNamespace
from typing import Any, Final

from tests.support.services import files

from carrel.adapters.aes_vault import AesGcmVault
from carrel.adapters.git import GitDirectory
from carrel.adapters.sqlite import open_store
from carrel.adapters.system_clock import SystemClock
from carrel.adapters.tokenizers.estimate import EstimateTokens
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.webhooks import PostResult
from carrel.ports import Ports

DATABASE: Final = "carrel.db"
_STORE_PORTS: Final = (
    *("trees", "blobs", "records", "runs", "events", "idempotency", "deliveries"),
    *("sessions", "recalls", "tallies", "erasure"),
)


class TravelClock(SystemClock):
    """System clock that a test can set ahead by milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> TimestampMs:
        return super().now() + self.ahead


class UnreachableWebhooks:
    """Webhook sender without a network: every delivery fails."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        return PostResult(None, "there is no network here")

    async def refusal_reason(self, url: str) -> str | None:
        return None


class YieldingPort:
    """Port that lets other tasks run before each of its coroutines starts.

    SQLite reads on the event loop without suspending, so two actions would otherwise interleave
    only at their commits. PostgreSQL suspends at every read; tests of races need the same here.
    """

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any, **more: Any) -> Any:
            await asyncio.sleep(0)
            return await method(*args, **more)

        return call


def ports_over(
    store: Any, clock: SystemClock | None = None, directory: File | None = None
) -> Ports:
    """Ports over a store; git repositories need a directory."""
    return Ports(
        **{name: getattr(store, name) for name in _STORE_PORTS},
        vault=AesGcmVault(bytes(32)),
        webhook_sender=UnreachableWebhooks(),
        clock=clock or TravelClock(),
        tokenizer=EstimateTokens(),
        repositories=GitDirectory(directory / "git") if directory else None,
    )


@asynccontextmanager
async def open_ports(directory: File) -> AsyncIterator[Ports]:
    """Ports over the SQLite store of a directory, which is made from a template if absent."""
    async with open_store(files.fresh(directory / DATABASE)) as store:
        yielding = {name: YieldingPort(getattr(store, name)) for name in _STORE_PORTS}
        yield ports_over(SimpleNamespace(**yielding), directory=directory)


def overwrite_content(directory: File, digest: Digest, content: bytes | None) -> None:
    """Replace the bytes stored under a digest, as a failing disk would; None removes them."""
    name = bytes.fromhex(digest.removeprefix("sha256:"))
    with closing(sqlite3.connect(directory / DATABASE)) as db, db:
        changed = db.execute("UPDATE content SET body = ? WHERE digest = ?", (content, name))
        assert changed.rowcount


def advance_clock(ports: Ports, milliseconds: int) -> None:
    """Advance the clock."""
    clock = ports.clock
    assert isinstance(clock, TravelClock)
    clock.ahead += milliseconds
