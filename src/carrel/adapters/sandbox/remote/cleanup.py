"""Cancellation helpers for creating and removing remote machines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from anyio import CancelScope

from carrel.adapters.sandbox.remote.remote_run import ProviderUnreachable

_MAX_ATTEMPTS: Final = 3
Result = TypeVar("Result")


async def shield_cleanup(work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work` to its end even when cancelled, then raise CancelledError.

    So nothing is created after the cleanup has run.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with CancelScope(shield=True):
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


async def cancel_promptly(work: Coroutine[Any, Any, Result]) -> Result:
    """Raise CancelledError at once when cancelled, even if a library would swallow it."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        task.cancel()
        raise
    return task.result()


async def dispose(removal: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a removal, retrying when the provider is unreachable.

    A machine that cannot be removed ends by itself after its own timeout.
    """
    for _ in range(_MAX_ATTEMPTS):
        with suppress(ProviderUnreachable):
            return await shield_cleanup(removal())
