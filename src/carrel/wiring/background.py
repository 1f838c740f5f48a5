"""What a server process does beside answering: webhooks, garbage, files, dreams, approved calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from carrel.actions.events.webhook_dispatch import run_dispatch
from carrel.actions.maintenance import integrity
from carrel.actions.memory.dream_scheduler import run_due_dreams
from carrel.actions.overlay import default_files
from carrel.ports import LeaderLock, Ports
from carrel.ports.logging import log_of
from carrel.server.http.request_log import error_fields
from carrel.tools.approved_calls import run_approvals
from carrel.wiring.catalog import configured_object_store, keep_catalog, leader_lock
from carrel.wiring.lazy_local_sandbox import LOCAL, LazyLocalSandbox
from carrel.wiring.ports import OpenStore
from carrel.wiring.retention import expire_approvals_and_jobs
from carrel.wiring.transcripts import keep_transcripts, retire_sessions

_NOTE_EVERY: Final = 15.0
_log = log_of("carrel")


@asynccontextmanager
async def background(opened: OpenStore, stop: asyncio.Event) -> AsyncIterator[None]:
    """Go on until the end; what is half done then is finished."""
    settings, ports = opened.settings, opened.ports
    backoff = tuple(int(seconds) for seconds in settings.webhook_backoff.split(","))
    works = [
        run_dispatch(ports, stop, backoff=backoff),
        keep_transcripts(opened, stop),
        run_approvals(ports, stop),
        _run_periodically(_NOTE_EVERY, stop, lambda: flush_key_usage(ports)),
        _self_test_sandbox(ports),
    ]
    if object_store := configured_object_store(settings):
        works.append(keep_catalog(opened, object_store, stop))
    if settings.defaults_follow:
        works.append(_follow_defaults(ports))
    if settings.dreams_seconds:
        works.append(_dream(opened, stop))
    if settings.gc_minutes:
        works.append(_run_periodically(settings.gc_minutes * 60.0, stop, lambda: _collect(opened)))
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await flush_key_usage(ports)


async def _run_periodically(
    seconds: float, stop: asyncio.Event, do: Callable[[], Awaitable[None]]
) -> None:
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
            return
        try:
            await do()
        except Exception as problem:
            _log.error("background work failed", **error_fields(problem))


async def _self_test_sandbox(ports: Ports) -> None:
    """Once, so that the first command need not wait, and operators see what isolates here."""
    local = ports.sandboxes.get(LOCAL)
    if not isinstance(local, LazyLocalSandbox):
        return
    try:
        tier = await local.ready()
        _log.info("sandbox", tier=tier, lacking=list(local.lacking))
    except Exception as problem:
        _log.error("background work failed", **error_fields(problem))


async def _follow_defaults(ports: Ports) -> None:
    """Once, for the files that came with this Carrel."""
    try:
        async for brought in default_files.update_all_tenants(ports):
            await asyncio.sleep(0)  # a store that answers at once would let nobody else go first
            if brought.problem or brought.written:
                problem = brought.problem and str(brought.problem)
                written = len(brought.written)
                _log.info("defaults", tenant=brought.tenant, written=written, problem=problem)
    except Exception as problem:
        _log.error("background work failed", **error_fields(problem))


async def _dream(opened: OpenStore, stop: asyncio.Event) -> None:
    """Let agents dream when it is their time; of all processes on the store one sees to it."""
    turn = leader_lock(opened.settings, "dreams")
    try:
        await _run_periodically(
            opened.settings.dreams_seconds, stop, lambda: run_dreams_as_leader(opened, turn)
        )
    finally:
        await turn.release()


async def run_dreams_as_leader(opened: OpenStore, turn: LeaderLock) -> None:
    """Let those dream whose time has come, unless another process has the turn."""
    if not await turn.try_acquire():
        return
    async for slept in run_due_dreams(opened.ports):
        if slept.problem is None:
            _log.info("dream", tenant=slept.tenant, agent=slept.agent, promoted=slept.promoted)
        else:
            about = error_fields(slept.problem)
            _log.error("dream failed", tenant=slept.tenant, agent=slept.agent, **about)


async def flush_key_usage(ports: Ports) -> None:
    """Write down when keys were last used."""
    marks = dict(ports.key_last_used)
    ports.key_last_used.clear()
    if marks:
        await ports.records.mark_used(marks)


async def _collect(opened: OpenStore) -> None:
    settings = opened.settings
    await integrity.collect(
        opened.upkeep,
        opened.objects,
        now=opened.ports.clock.now(),
        grace=settings.gc_grace_minutes * 60_000,
        events_kept=settings.events_days * 86_400_000,
    )
    await retire_sessions(opened)
    await expire_approvals_and_jobs(opened)
