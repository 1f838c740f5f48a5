"""Ids that sort by creation time, and unguessable tokens."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

from carrel.adapters.system_clock import SystemClock
from carrel.core.identifiers import TimestampMs


class ManualClock(SystemClock):
    """A clock that a test sets."""

    at: TimestampMs = 1_800_000_000_000

    def now(self) -> TimestampMs:
        return self.at


def test_clock_returns_milliseconds() -> None:
    before = time.time()
    assert before * 1000 - 1 <= SystemClock().now() <= time.time() * 1000 + 1


def test_id_is_a_prefix_the_time_and_random_characters() -> None:
    clock = ManualClock()
    id = clock.new_id("per")
    assert re.fullmatch("per_[0-9a-f]{24}", id)
    assert int(id[4:16], 16) == clock.at


def test_ids_rise_within_one_millisecond() -> None:
    clock = ManualClock()
    ids = [clock.new_id("per") for _ in range(5000)]
    assert ids == sorted(set(ids))


def test_ids_rise_although_the_clock_goes_back() -> None:
    clock = ManualClock()
    before = clock.new_id("per")
    clock.at -= 3_600_000
    assert clock.new_id("per") > before


def test_two_threads_never_get_the_same_id() -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: clock.new_id("per"), range(4000)))
    assert len(set(ids)) == 4000


def test_two_clocks_give_different_ids_in_the_same_millisecond() -> None:
    assert ManualClock().new_id("per") != ManualClock().new_id("per")


def test_token_has_256_bits_and_is_never_repeated() -> None:
    clock = SystemClock()
    tokens = {clock.new_token("carrel") for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch("carrel_[A-Za-z0-9_-]{43}", token) for token in tokens)
