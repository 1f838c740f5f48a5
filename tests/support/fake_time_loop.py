"""A loop in which no time passes but what everybody in it waits for: no machine is too slow."""

from __future__ import annotations

import asyncio
import selectors

import pytest

A_MOMENT = 1e-6
"""A clock is never late by nothing: what was waited for is over, however numbers are rounded."""


class Leaps(selectors.DefaultSelector):
    """Where it would wait for a while, it moves the clock by that much."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0 if timeout else timeout)
        if timeout and not found:
            self.now += timeout + A_MOMENT
        return found


def leaping_loop() -> asyncio.AbstractEventLoop:
    leaps = Leaps()
    loop = asyncio.SelectorEventLoop(leaps)
    loop.time = lambda: leaps.now  # type: ignore[method-assign]  # what every timer goes by
    return loop


LEAPING = ("asyncio", {"loop_factory": leaping_loop})
in_leaps = pytest.mark.parametrize("anyio_backend", [pytest.param(LEAPING, id="in leaps")])
