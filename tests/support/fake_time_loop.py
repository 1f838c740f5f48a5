"""Event loop in which time passes only while all tasks wait, so that tests never time out."""

from __future__ import annotations

import asyncio
import selectors

import pytest

A_MOMENT = 1e-6
"""Added to every wait, since rounding could otherwise end it too early."""


class Leaps(selectors.DefaultSelector):
    """Advances the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0 if timeout else timeout)
        if timeout and not events:
            self.now += timeout + A_MOMENT
        return events


def leaping_loop() -> asyncio.AbstractEventLoop:
    leaps = Leaps()
    loop = asyncio.SelectorEventLoop(leaps)
    loop.time = lambda: leaps.now  # type: ignore[method-assign]  # the clock of all timers
    return loop


LEAPING = ("asyncio", {"loop_factory": leaping_loop})
in_leaps = pytest.mark.parametrize("anyio_backend", [pytest.param(LEAPING, id="in leaps")])
