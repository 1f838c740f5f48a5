"""Background work of a server process.

Webhook delivery, garbage collection, transcripts, catalog, dreams, approved calls and runs that
stopped reporting.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from carrel.actions.accounts.credential_audit import store_credential_uses
from carrel.actions.events.webhook_dispatch import run_dispatch
from carrel.actions.maintenance import integrity
from carrel.actions.memory.dream_scheduler import run_due_dreams
from carrel.actions.overlay import default_files
from carrel.actions.run_reports import abandon_silent_runs
from carrel.ports import LeaderLock, Ports
from carrel.ports.logging import get_logger
from carrel.server.http.request_log import error_fields
from carrel.tools.approved_calls import run_approvals
from carrel.wiring.catalog import configured_object_store, follow_catalog, leader_lock
from carrel.wiring.expiry import expire_approvals_and_jobs, finish_deletions
from carrel.wiring.lazy_local_sandbox import LOCAL_PROVIDER, LazyLocalSandbox
from carrel.wiring.ports import OpenStore
from carrel.wiring.transcripts import expire_sessions, run_transcript_mirror

_KEY_USAGE_SECONDS: Final = 15.0
_PROMPT_SIZES_SECONDS: Final = 5.0
_RESERVE_SECONDS: Final = 60.0
_ABANDON_SECONDS: Final = 30.0
_log = get_logger("carrel")


@asynccontextmanager
async def background_work(store: OpenStore, stop: asyncio.Event) -> AsyncIterator[None]:
    """Run all background tasks; on exit stop them and wait until they finish."""
    settings, ports = store.settings, store.ports
    backoff = tuple(int(seconds) for seconds in settings.webhook_backoff.split(","))
    coroutines = [
        run_dispatch(ports, stop, backoff=backoff, public_url=settings.public_url),
        run_transcript_mirror(store, stop),
        run_approvals(ports, stop),
        _abandon_runs(store, stop),
        _run_periodically(_KEY_USAGE_SECONDS, stop, lambda: flush_key_usage(ports)),
        _run_periodically(_PROMPT_SIZES_SECONDS, stop, lambda: flush_prompt_sizes(ports)),
        _run_logged(lambda: finish_deletions(store)),
        _self_test_sandbox(ports),
        _keep_reserve(store, stop),
    ]
    if object_store := configured_object_store(settings):
        coroutines.append(follow_catalog(store, object_store, stop))
    if settings.defaults_auto_update:
        coroutines.append(_update_defaults(ports))
    if settings.dream_poll_seconds:
        coroutines.append(_run_dreams(store, stop))
    if settings.gc_interval_minutes:
        coroutines.append(
            _run_periodically(
                settings.gc_interval_minutes * 60.0, stop, lambda: _collect_garbage(store)
            )
        )
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _run_logged(lambda: flush_key_usage(ports))
        await _run_logged(lambda: flush_prompt_sizes(ports))


async def _run_periodically(
    seconds: float, stop: asyncio.Event, action: Callable[[], Awaitable[None]]
) -> None:
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
            return
        await _run_logged(action)


async def _run_logged(action: Callable[[], Awaitable[object]]) -> None:
    """Run an action and log its error, such as an outage."""
    try:
        await action()
    except Exception as problem:
        _log.error("background work failed", **error_fields(problem))


async def _keep_reserve(store: OpenStore, stop: asyncio.Event) -> None:
    """Reserve disk space at startup, and again after deletions used it."""
    await store.maintenance.keep_reserve()
    await _run_periodically(_RESERVE_SECONDS, stop, store.maintenance.keep_reserve)


async def _self_test_sandbox(ports: Ports) -> None:
    """Test the local sandbox at startup and log its isolation tier."""
    local = ports.sandboxes.get(LOCAL_PROVIDER)
    if not isinstance(local, LazyLocalSandbox):
        return
    try:
        tier = await local.ready()
        _log.info("sandbox", tier=tier, lacking=list(local.missing_features))
    except Exception as problem:
        _log.error("background work failed", **error_fields(problem))


async def _update_defaults(ports: Ports) -> None:
    """Update tenants' default files to this version, once at startup."""
    try:
        async for update in default_files.update_all_tenants(ports):
            await asyncio.sleep(0)  # yield to other tasks even if the store never blocks
            if update.problem or update.written:
                problem = update.problem and str(update.problem)
                written = len(update.written)
                _log.info("defaults", tenant=update.tenant, written=written, problem=problem)
    except Exception as problem:
        _log.error("background work failed", **error_fields(problem))


async def _run_dreams(store: OpenStore, stop: asyncio.Event) -> None:
    """Run due dreams periodically, in one process of the deployment."""
    lock = leader_lock(store.settings, "dreams")
    try:
        await _run_periodically(
            store.settings.dream_poll_seconds, stop, lambda: run_dreams_as_leader(store, lock)
        )
    finally:
        await lock.release()


async def run_dreams_as_leader(store: OpenStore, lock: LeaderLock) -> None:
    """Run due dreams unless another process holds the leader lock."""
    if not await lock.try_acquire():
        return
    async for dream in run_due_dreams(store.ports):
        if dream.problem is None:
            _log.info("dream", tenant=dream.tenant, agent=dream.agent, promoted=dream.promoted)
        else:
            fields = error_fields(dream.problem)
            _log.error("dream failed", tenant=dream.tenant, agent=dream.agent, **fields)


async def _abandon_runs(store: OpenStore, stop: asyncio.Event) -> None:
    """Make runs abandoned that stopped reporting, in one process of the deployment."""
    lock = leader_lock(store.settings, "runs")
    try:
        await _run_periodically(
            _ABANDON_SECONDS, stop, lambda: abandon_runs_as_leader(store.ports, lock)
        )
    finally:
        await lock.release()


async def abandon_runs_as_leader(ports: Ports, lock: LeaderLock) -> None:
    """Make silent runs abandoned unless another process holds the leader lock."""
    if await lock.try_acquire() and (count := await abandon_silent_runs(ports)):
        _log.info("runs abandoned", count=count)


async def flush_key_usage(ports: Ports) -> None:
    """Store where and when keys were used; after an error that remains to be stored."""
    await store_credential_uses(ports)
    last_used = dict(ports.key_last_used)
    ports.key_last_used.clear()
    if not last_used:
        return
    try:
        await ports.records.mark_used(last_used)
    except BaseException:
        for key, at in last_used.items():
            ports.key_last_used.setdefault(key, at)
        raise


async def flush_prompt_sizes(ports: Ports) -> None:
    """Store the sizes of prompts; after an error they remain to be stored."""
    sizes = dict(ports.prompt_sizes)
    ports.prompt_sizes.clear()
    if not sizes:
        return
    try:
        await ports.runs.record_prompts(list(sizes.values()))
    except BaseException:
        for run, values in sizes.values():
            ports.prompt_sizes.setdefault(run.id, (run, values))
        raise


async def _collect_garbage(store: OpenStore) -> None:
    settings = store.settings
    await finish_deletions(store)
    await integrity.collect(
        store.maintenance,
        store.objects,
        now=store.ports.clock.now(),
        grace=settings.gc_grace_minutes * 60_000,
        event_retention_ms=settings.event_retention_days * 86_400_000,
    )
    await expire_sessions(store)
    await expire_approvals_and_jobs(store)
