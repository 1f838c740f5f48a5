"""What must be done to its end when nobody waits for it any more, and what must not be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from anyio import CancelScope

from carrel.adapters.sandbox.remote.remote_run import ProviderUnreachable

_TRIES: Final = 3
Result = TypeVar("Result")


async def shield_cleanup(work: Coroutine[Any, Any, Result]) -> Result:
    """Where it is cancelled it is still waited for: nothing is made after it was taken away."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with CancelScope(shield=True):
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


async def cancelled(work: Coroutine[Any, Any, Result]) -> Result:
    """Where it is cancelled that is heeded at once, also if a library would swallow it."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        task.cancel()
        raise
    return task.result()


async def dispose(removal: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Tried a few times; what is still there afterwards ends by itself, when its time is over."""
    for _ in range(_TRIES):
        with suppress(ProviderUnreachable):
            return await shield_cleanup(removal())
