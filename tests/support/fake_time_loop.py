"""Event loop in which time passes only while all tasks wait, so that tests never time out."""

from __future__ import annotations

import asyncio
import selectors

import pytest

EXTRA_SECONDS = 1e-6
"""Added to every wait, since rounding could otherwise end it too early."""


class FakeTimeSelector(selectors.DefaultSelector):
    """Advances the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0 if timeout else timeout)
        if timeout and not events:
            self.now += timeout + EXTRA_SECONDS
        return events


def fake_time_loop() -> asyncio.AbstractEventLoop:
    leaps = FakeTimeSelector()
    loop = asyncio.SelectorEventLoop(leaps)
    loop.time = lambda: leaps.now  # type: ignore[method-assign]  # the clock of all timers
    return loop


FAKE_TIME = ("asyncio", {"loop_factory": fake_time_loop})
with_fake_time = pytest.mark.parametrize("anyio_backend", [pytest.param(FAKE_TIME, id="in leaps")])
