"""Ids that sort by when they were made, and tokens that nobody guesses."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

from carrel.adapters.system_clock import SystemClock
from carrel.core.identifiers import TimestampMs


class WornClock(SystemClock):
    """A clock whose time is set by hand."""

    at: TimestampMs = 1_800_000_000_000

    def now(self) -> TimestampMs:
        return self.at


def test_it_tells_the_time_in_milliseconds() -> None:
    before = time.time()
    assert before * 1000 - 1 <= SystemClock().now() <= time.time() * 1000 + 1


def test_an_id_is_a_prefix_the_moment_and_chance() -> None:
    clock = WornClock()
    id = clock.new_id("per")
    assert re.fullmatch("per_[0-9a-f]{24}", id)
    assert int(id[4:16], 16) == clock.at


def test_ids_rise_strictly_even_within_one_millisecond() -> None:
    clock = WornClock()
    ids = [clock.new_id("per") for _ in range(5000)]
    assert ids == sorted(set(ids))


def test_ids_rise_though_the_time_goes_back() -> None:
    clock = WornClock()
    before = clock.new_id("per")
    clock.at -= 3_600_000
    assert clock.new_id("per") > before


def test_no_two_threads_are_given_the_same_id() -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: clock.new_id("per"), range(4000)))
    assert len(set(ids)) == 4000


def test_two_clocks_give_different_ids_in_the_same_millisecond() -> None:
    assert WornClock().new_id("per") != WornClock().new_id("per")


def test_a_token_has_256_bits_and_is_never_the_same() -> None:
    clock = SystemClock()
    tokens = {clock.new_token("carrel") for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch("carrel_[A-Za-z0-9_-]{43}", token) for token in tokens)
