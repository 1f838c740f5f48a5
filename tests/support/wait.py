"""Waits for a condition that another process, thread or task brings about."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Final

DEADLINE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.01


async def wait_until(
    condition: Callable[[], object], awaited: str, seconds: float = DEADLINE_SECONDS
) -> None:
    """Poll a condition, which may be asynchronous, until it is true.

    Raises AssertionError that names what was awaited.
    """
    try:
        async with asyncio.timeout(seconds):
            while not await _evaluate(condition):  # noqa: ASYNC110 - it happens elsewhere
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise _deadline_error(awaited, seconds) from None


def wait_until_sync(
    condition: Callable[[], object], awaited: str, seconds: float = DEADLINE_SECONDS
) -> None:
    """Like wait_until, outside an event loop."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise _deadline_error(awaited, seconds)
        time.sleep(_POLL_SECONDS)


async def _evaluate(condition: Callable[[], object]) -> object:
    result = condition()
    return await result if inspect.isawaitable(result) else result


def _deadline_error(awaited: str, seconds: float) -> AssertionError:
    return AssertionError(f"not within {seconds:g} seconds: {awaited}")
