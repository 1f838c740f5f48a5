"""Repeats sync passes: until both sides are equal, or on every change."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.scan import DirectoryScanner
from carrel.cli.sync.sync_pass import PassResult, ProgressCallback, SyncPair, sync_once
from carrel.cli.sync.sync_state import SyncState, load_state, resume_state
from carrel_client import CONNECTED, AsyncClient, Forbidden, ServerError, ServerUnreachable

SETTLE_TIMEOUT_SECONDS: Final = 15.0
"""Time to wait for files that are being written."""
RESCAN_SECONDS: Final = 300.0
"""Interval of full passes when neither side reports a change."""
WORKSPACE_UPDATED: Final = "workspace.updated"
_MAX_PASSES: Final = 6
_MAX_RETRY_SECONDS: Final = 60.0
_BEING_WRITTEN: Final = "being written: skipped until the next sync"


@asynccontextmanager
async def open_pair(
    client: AsyncClient,
    server: str,
    agent: str,
    directory: str | os.PathLike[str],
    settle_seconds: float,
    *,
    dry_run: bool = False,
) -> AsyncIterator[tuple[SyncPair, list[str]]]:
    """Open directory and agent; yield them with the names of recovered copies.

    A dry run, for which the client must be one too, leaves the directory as it is. Raises
    UnusableWorkspace, DirectoryLocked, NotFound.
    """
    id = await _find_agent_id(client, agent)
    synced = SyncedDirectory(directory)
    try:
        state = resume_state(
            synced, load_state(synced), SyncState(server=server, agent=agent, id=id)
        )
        recovered = [] if dry_run else _recover_copies(synced, state)
        scanner = DirectoryScanner(synced, settle_seconds)
        pair = SyncPair(synced, scanner, client.agent(agent), state, is_dry_run=dry_run)
        pair.save()
        yield pair, recovered
    finally:
        synced.close()


def _recover_copies(synced: SyncedDirectory, state: SyncState) -> list[str]:
    """Recover what a crash left behind; return the names of copies."""
    digests = {digest for last in state.files.values() for digest in (last.here, last.there)}
    return synced.recover({digest for digest in digests if digest})


async def _find_agent_id(client: AsyncClient, agent: str) -> str:
    """Return the agent's id, or an empty text if the token may not read it."""
    try:
        return str((await client.agents.get(agent)).id)
    except Forbidden:
        return ""


async def sync_until_stable(
    pair: SyncPair,
    settle_seconds: float,
    *,
    timeout_seconds: float = SETTLE_TIMEOUT_SECONDS,
    upload_only: bool = False,
    on_progress: ProgressCallback | None = None,
) -> PassResult:
    """Repeat passes until nothing is left to do.

    Waits at most `timeout_seconds` for files that are being written.
    """
    total, count, deadline = PassResult(), 0, time.monotonic() + timeout_seconds
    while count < _MAX_PASSES:
        outcome = await sync_once(pair, upload_only=upload_only, on_progress=on_progress)
        total.merge(outcome)
        if outcome.unsettled and time.monotonic() < deadline:
            await asyncio.sleep(max(settle_seconds, 0.01))
        elif outcome.has_more:
            count += 1
        else:
            break
    if timeout_seconds:
        total.problems |= dict.fromkeys(total.unsettled, _BEING_WRITTEN)
    return total


async def sync_continuously(
    pair: SyncPair,
    client: AsyncClient,
    settle_seconds: float,
    report: Callable[[PassResult | str], None],
) -> None:
    """Keep both sides equal until cancelled. Raises CarrelError, OSError."""
    wake, stop = asyncio.Event(), asyncio.Event()
    watchers = [
        asyncio.create_task(_watch_local(pair.directory.path, wake, stop)),
        asyncio.create_task(_watch_remote(client, pair.state.id, wake)),
    ]
    await asyncio.sleep(0)  # Let the watchers start before the first pass, to miss no change.
    failures, wait = 0, 0.0
    try:
        while True:
            await _wait_for_change(wake, wait, watchers)
            wake.clear()
            try:
                outcome = await sync_until_stable(pair, settle_seconds, timeout_seconds=0)
            except (ServerUnreachable, ServerError) as problem:
                failures += 1
                wait = min(2.0**failures, _MAX_RETRY_SECONDS)
                report(f"{problem}; retrying")
                continue
            failures = 0
            wait = (
                max(settle_seconds, 0.05)
                if outcome.unsettled or outcome.has_more
                else RESCAN_SECONDS
            )
            report(outcome)
    finally:
        stop.set()
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)


async def _wait_for_change(
    wake: asyncio.Event, wait: float, watchers: list[asyncio.Task[None]]
) -> None:
    """Wait for a change or a timeout. Raises the error of a failed watcher."""
    waiting = asyncio.create_task(wake.wait())
    try:
        await asyncio.wait({waiting, *watchers}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    for watcher in watchers:
        if watcher.done():
            watcher.result()


async def _watch_local(root: str, wake: asyncio.Event, stop: asyncio.Event) -> None:
    from watchfiles import Change, awatch  # noqa: PLC0415 - not needed for a single pass

    def is_relevant(change: Change, path: str) -> bool:
        return not any(part.startswith(".") for part in path[len(root) :].split(os.sep))

    polling: bool | None = None
    while not stop.is_set():
        changes = awatch(root, watch_filter=is_relevant, stop_event=stop, force_polling=polling)
        try:
            async for _ in changes:
                wake.set()
        except OSError:  # The system's limit of watches is reached: poll instead.
            if polling:
                raise
            polling = True


async def _watch_remote(client: AsyncClient, id: str, wake: asyncio.Event) -> None:
    try:
        await _listen(client, id, wake, own_workspace=False)
    except Forbidden:
        await _listen(client, id, wake, own_workspace=True)


async def _listen(
    client: AsyncClient, id: str, wake: asyncio.Event, *, own_workspace: bool
) -> None:
    async for event in client.events(
        types=[WORKSPACE_UPDATED], own_workspace=own_workspace, include_connected=True
    ):
        scope = event.workspace or {}
        is_other_agent = scope.get("kind") == "agent" and id and scope.get("name") != id
        if event.type == CONNECTED or (event.type == WORKSPACE_UPDATED and not is_other_agent):
            wake.set()


async def run_until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until SIGINT or SIGTERM cancels it."""
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signal_number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task
