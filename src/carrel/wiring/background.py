"""What a server process does beside answering: webhooks, garbage, files, dreams, approved calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from carrel.actions.events.webhook_dispatch import run_dispatch
from carrel.actions.maintenance import integrity as upkeep
from carrel.actions.memory.dream_scheduler import dream_when_due
from carrel.actions.overlay import default_files as seeds
from carrel.ports import Turn, World
from carrel.ports.logging import log_of
from carrel.server.http.request_log import describe
from carrel.tools.approved_calls import run_approvals
from carrel.wiring.catalog import keep_catalog, kept_depot, turn_of
from carrel.wiring.lazy_local_sandbox import LOCAL, LateSandbox
from carrel.wiring.retention import retire_hands
from carrel.wiring.transcripts import keep_transcripts, retire_sessions
from carrel.wiring.world import Opened

_NOTE_EVERY: Final = 15.0
_log = log_of("carrel")


@asynccontextmanager
async def background(opened: Opened, stop: asyncio.Event) -> AsyncIterator[None]:
    """Go on until the end; what is half done then is finished."""
    settings, world = opened.settings, opened.world
    backoff = tuple(int(seconds) for seconds in settings.webhook_backoff.split(","))
    works = [
        run_dispatch(world, stop, backoff=backoff),
        keep_transcripts(opened, stop),
        run_approvals(world, stop),
        _every(_NOTE_EVERY, stop, lambda: note_use(world)),
        _try_walls(world),
    ]
    if depot := kept_depot(settings):
        works.append(keep_catalog(opened, depot, stop))
    if settings.defaults_follow:
        works.append(_follow_defaults(world))
    if settings.dreams_seconds:
        works.append(_dream(opened, stop))
    if settings.gc_minutes:
        works.append(_every(settings.gc_minutes * 60.0, stop, lambda: _collect(opened)))
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await note_use(world)


async def _every(seconds: float, stop: asyncio.Event, do: Callable[[], Awaitable[None]]) -> None:
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
            return
        try:
            await do()
        except Exception as problem:
            _log.error("background work failed", **describe(problem))


async def _try_walls(world: World) -> None:
    """Once, so that the first command need not wait, and operators see what isolates here."""
    local = world.sandboxes.get(LOCAL)
    if not isinstance(local, LateSandbox):
        return
    try:
        tier = await local.ready()
        _log.info("sandbox", tier=tier, lacking=list(local.lacking))
    except Exception as problem:
        _log.error("background work failed", **describe(problem))


async def _follow_defaults(world: World) -> None:
    """Once, for the files that came with this Carrel."""
    try:
        async for brought in seeds.follow(world):
            await asyncio.sleep(0)  # a store that answers at once would let nobody else go first
            if brought.problem or brought.written:
                problem = brought.problem and str(brought.problem)
                written = len(brought.written)
                _log.info("defaults", tenant=brought.tenant, written=written, problem=problem)
    except Exception as problem:
        _log.error("background work failed", **describe(problem))


async def _dream(opened: Opened, stop: asyncio.Event) -> None:
    """Let agents dream when it is their time; of all processes on the store one sees to it."""
    turn = turn_of(opened.settings, "dreams")
    try:
        await _every(opened.settings.dreams_seconds, stop, lambda: dream_in_turn(opened, turn))
    finally:
        await turn.leave()


async def dream_in_turn(opened: Opened, turn: Turn) -> None:
    """Let those dream whose time has come, unless another process has the turn."""
    if not await turn.take():
        return
    async for slept in dream_when_due(opened.world):
        if slept.problem is None:
            _log.info("dream", tenant=slept.tenant, agent=slept.agent, promoted=slept.promoted)
        else:
            about = describe(slept.problem)
            _log.error("dream failed", tenant=slept.tenant, agent=slept.agent, **about)


async def note_use(world: World) -> None:
    """Write down when keys were last used."""
    marks = dict(world.marks)
    world.marks.clear()
    if marks:
        await world.records.used(marks)


async def _collect(opened: Opened) -> None:
    settings = opened.settings
    await upkeep.collect(
        opened.upkeep,
        opened.objects,
        now=opened.world.clock.now(),
        grace=settings.gc_grace_minutes * 60_000,
        events_kept=settings.events_days * 86_400_000,
    )
    await retire_sessions(opened)
    await retire_hands(opened)
