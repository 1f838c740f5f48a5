"""Passes one after another: until both sides are the same, or whenever something happens."""

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
from carrel.cli.sync.sync_pass import PassResult, SyncPair, Watch, sync_once
from carrel.cli.sync.sync_state import SyncState, load_state, same
from carrel_client import CONNECTED, AsyncClient, Forbidden, ServerError, ServerUnreachable

PATIENCE: Final = 15.0
"""Seconds to wait for files that are being written."""
EVERY: Final = 300.0
"""Seconds after which both sides are looked at even if neither has said a word."""
UPDATED: Final = "workspace.updated"
_MOST_PASSES: Final = 6
_LONGEST_WAIT: Final = 60.0
_WRITING: Final = "somebody is writing it: it is left for the next time"


@asynccontextmanager
async def opened(
    desk: AsyncClient, server: str, agent: str, directory: str | os.PathLike[str], settle: float
) -> AsyncIterator[tuple[SyncPair, list[str]]]:
    """Both sides, and the names of texts that were found to be left over from a crash.

    Raises Unfit, Occupied, NotFound.
    """
    id = await _id_of(desk, agent)
    folder = SyncedDirectory(directory)
    try:
        note = same(folder, load_state(folder), SyncState(server=server, agent=agent, id=id))
        known = {digest for each in note.files.values() for digest in (each.here, each.there)}
        kept = folder.recover({digest for digest in known if digest})
        sides = SyncPair(folder, DirectoryScanner(folder, settle), desk.agent(agent), note)
        sides.save()
        yield sides, kept
    finally:
        folder.close()


async def _id_of(desk: AsyncClient, agent: str) -> str:
    """Empty where the credential may not know."""
    try:
        return str((await desk.agents.get(agent)).id)
    except Forbidden:
        return ""


async def passes(
    sides: SyncPair,
    settle: float,
    *,
    read_timeouts: float = PATIENCE,
    taking: bool = False,
    watch: Watch | None = None,
) -> PassResult:
    """Pass after pass, until one finds nothing more to do; what is being written is waited for."""
    all_done, count, ends = PassResult(), 0, time.monotonic() + read_timeouts
    while count < _MOST_PASSES:
        one = await sync_once(sides, taking=taking, watch=watch)
        all_done.then(one)
        if one.unsettled and time.monotonic() < ends:
            await asyncio.sleep(max(settle, 0.01))
        elif one.moved:
            count += 1
        else:
            break
    if read_timeouts:
        all_done.problems |= dict.fromkeys(all_done.unsettled, _WRITING)
    return all_done


async def follow(
    sides: SyncPair, desk: AsyncClient, settle: float, tell: Callable[[PassResult | str], None]
) -> None:
    """Keep both sides the same until cancelled. Raises CarrelError, OSError."""
    bell, stop = asyncio.Event(), asyncio.Event()
    watchers = [
        asyncio.create_task(_watch_here(sides.folder.path, bell, stop)),
        asyncio.create_task(_watch_there(desk, sides.note.id, bell)),
    ]
    await asyncio.sleep(0)  # The directory is watched from here on: nothing is missed.
    failures, wait = 0, 0.0
    try:
        while True:
            await _rung(bell, wait, watchers)
            bell.clear()
            try:
                outcome = await passes(sides, settle, read_timeouts=0)
            except (ServerUnreachable, ServerError) as problem:
                failures += 1
                wait = min(2.0**failures, _LONGEST_WAIT)
                tell(f"{problem}; trying again")
                continue
            failures = 0
            wait = max(settle, 0.05) if outcome.unsettled or outcome.moved else EVERY
            tell(outcome)
    finally:
        stop.set()
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)


async def _rung(bell: asyncio.Event, wait: float, watchers: list[asyncio.Task[None]]) -> None:
    """Return when there is a reason to look. Raises what a watcher could not go on for."""
    ringing = asyncio.create_task(bell.wait())
    try:
        await asyncio.wait({ringing, *watchers}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ringing.cancel()
    for watcher in watchers:
        if watcher.done():
            watcher.result()


async def _watch_here(root: str, bell: asyncio.Event, stop: asyncio.Event) -> None:
    from watchfiles import Change, awatch  # noqa: PLC0415 - only for those who watch

    def concerns(change: Change, path: str) -> bool:
        return not any(part.startswith(".") for part in path[len(root) :].split(os.sep))

    polling: bool | None = None
    while not stop.is_set():
        changes = awatch(root, watch_filter=concerns, stop_event=stop, force_polling=polling)
        try:
            async for _ in changes:
                bell.set()
        except OSError:  # The system watches no more directories: look at them ourselves.
            if polling:
                raise
            polling = True


async def _watch_there(desk: AsyncClient, id: str, bell: asyncio.Event) -> None:
    try:
        await _listen(desk, id, bell, own=False)
    except Forbidden:
        await _listen(desk, id, bell, own=True)


async def _listen(desk: AsyncClient, id: str, bell: asyncio.Event, *, own: bool) -> None:
    async for heard in desk.events(types=[UPDATED], own_workspace=own, include_connected=True):
        scope = heard.workspace or {}
        others = scope.get("kind") == "agent" and id and scope.get("name") != id
        if heard.type == CONNECTED or (heard.type == UPDATED and not others):
            bell.set()


async def run_until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Do it until somebody asks to stop, by Ctrl-C or otherwise."""
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, task.cancel)
    with suppress(asyncio.CancelledError):
        await task
