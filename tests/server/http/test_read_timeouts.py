"""Waiting for clients: each for as long as it may take, and nobody is mistaken for another."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from tests.support.fake_time_loop import FAKE_TIME

from carrel.server.http.read_timeouts import ReadTimeouts
from carrel.server.http.request_parsing import BodyLimits, ReadTimeout, read_body

pytestmark = pytest.mark.anyio

SOON, LONG = 0.016, 1000.0


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return FAKE_TIME


def now() -> float:
    return asyncio.get_running_loop().time()


def waiting(
    read_timeouts: ReadTimeouts, awaited: Awaitable[Any], seconds: float
) -> asyncio.Task[Any]:
    return asyncio.create_task(read_timeouts.wait_for(awaited, now() + seconds, abs(seconds)))


async def turns(many: int = 5) -> None:
    for _ in range(many):
        await asyncio.sleep(0)


async def at_rest(read_timeouts: ReadTimeouts) -> None:
    """Nobody is listed, and soon nobody is looked for."""
    assert not read_timeouts._waiting
    assert not read_timeouts._expired
    if read_timeouts._timer is not None:
        looked = asyncio.Event()
        asyncio.get_running_loop().call_at(read_timeouts._timer.when(), looked.set)
        await looked.wait()
        await turns()
    assert read_timeouts._timer is None


async def test_what_comes_in_time_is_heard() -> None:
    read_timeouts = ReadTimeouts()
    bell = asyncio.Event()
    tasks = [waiting(read_timeouts, bell.wait(), LONG) for _ in range(50)]
    await turns()
    bell.set()

    assert await asyncio.gather(*tasks) == [True] * 50
    assert not read_timeouts._waiting


async def test_who_is_late_is_given_up_though_many_others_wait() -> None:
    read_timeouts, bell = ReadTimeouts(), asyncio.Event()
    others = [waiting(read_timeouts, bell.wait(), LONG) for _ in range(300)]
    await turns()
    late = [waiting(read_timeouts, asyncio.Event().wait(), SOON) for _ in range(30)]

    async with asyncio.timeout(30):
        given_up = await asyncio.gather(*late, return_exceptions=True)

    assert {type(each) for each in given_up} == {TimeoutError}
    assert not any(other.done() for other in others)
    bell.set()
    assert await asyncio.gather(*others) == [True] * 300
    await at_rest(read_timeouts)


async def test_nobody_is_given_up_before_their_time() -> None:
    read_timeouts, began = ReadTimeouts(), now()
    late = waiting(read_timeouts, asyncio.Event().wait(), SOON * 4)

    with pytest.raises(TimeoutError):
        await late
    assert now() - began >= SOON * 4


async def test_a_client_that_leaves_is_not_late() -> None:
    read_timeouts = ReadTimeouts()
    task = waiting(read_timeouts, asyncio.Event().wait(), LONG)
    await turns()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not read_timeouts._waiting


@pytest.mark.parametrize("first", ["leaves", "is late"])
async def test_who_leaves_at_the_very_moment_of_being_late_has_left(first: str) -> None:
    read_timeouts = ReadTimeouts()
    task = waiting(read_timeouts, asyncio.Event().wait(), -LONG)
    await turns()
    if first == "leaves":
        task.cancel()
    read_timeouts._cancel_expired()
    if first == "is late":
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not read_timeouts._waiting
    assert not read_timeouts._expired


async def test_what_comes_at_the_very_moment_of_being_late_is_late() -> None:
    read_timeouts, bell = ReadTimeouts(), asyncio.Event()
    task = waiting(read_timeouts, bell.wait(), -LONG)
    await turns()
    bell.set()
    read_timeouts._cancel_expired()

    with pytest.raises(TimeoutError):
        await task


async def test_who_was_late_can_go_on_and_be_cancelled_like_anybody() -> None:
    read_timeouts = ReadTimeouts()

    async def request() -> str:
        with pytest.raises(TimeoutError):
            await read_timeouts.wait_for(asyncio.Event().wait(), now(), SOON)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        await read_timeouts.wait_for(asyncio.sleep(0), now() + LONG, LONG)
        return "went on"

    assert await asyncio.create_task(request()) == "went on"
    await at_rest(read_timeouts)


@pytest.mark.parametrize("fails", [True, False])
async def test_what_ends_in_its_own_way_when_given_up_leaves_no_cancellation(fails: bool) -> None:
    read_timeouts = ReadTimeouts()

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if fails:
                raise ConnectionError from None
        return "heard"

    async def request() -> int:
        if fails:
            with pytest.raises(ConnectionError):
                await read_timeouts.wait_for(stubborn(), now(), SOON)
        else:
            assert await read_timeouts.wait_for(stubborn(), now(), SOON) == "heard"
        task = asyncio.current_task()
        return -1 if task is None else task.cancelling()

    assert await asyncio.create_task(request()) == 0
    await at_rest(read_timeouts)


async def test_who_outlived_a_cancellation_is_late_like_anybody() -> None:
    read_timeouts = ReadTimeouts()

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await read_timeouts.wait_for(asyncio.Event().wait(), now(), SOON)

    task = asyncio.create_task(request())
    await turns()
    task.cancel()
    with pytest.raises(TimeoutError):
        await task


async def test_a_shorter_patience_is_noticed_in_its_own_time() -> None:
    read_timeouts, bell = ReadTimeouts(), asyncio.Event()
    long = waiting(read_timeouts, bell.wait(), LONG)
    await turns()
    short = waiting(read_timeouts, asyncio.Event().wait(), SOON)

    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError):
            await short
    bell.set()
    assert await long


async def test_nothing_is_kept_of_those_who_are_gone() -> None:
    read_timeouts = ReadTimeouts()
    tasks = [waiting(read_timeouts, asyncio.Event().wait(), SOON) for _ in range(20)]
    await turns()
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    kept = weakref.WeakSet(tasks)
    tasks.clear()
    await at_rest(read_timeouts)
    gc.collect()

    assert not kept


def told(*messages: Mapping[str, Any]) -> Callable[[], Awaitable[Mapping[str, Any]]]:
    """A client that says this, and then nothing more."""
    left = list(messages)

    async def receive() -> Mapping[str, Any]:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


async def test_each_of_many_bodies_that_do_not_end_is_given_up() -> None:
    read_timeouts, limits = (
        ReadTimeouts(),
        BodyLimits(timeout_seconds=SOON, min_bytes_per_second=10**6),
    )
    part = {"type": "http.request", "body": b"x", "more_body": True}
    bodies = [read_body(told(*[part] * n), {}, 100, limits, read_timeouts) for n in range(40)]

    async with asyncio.timeout(30):
        found = await asyncio.gather(*bodies, return_exceptions=True)

    assert {type(each) for each in found} == {ReadTimeout}
    await at_rest(read_timeouts)


async def test_a_body_gains_time_with_its_bytes() -> None:
    read_timeouts, limits = (
        ReadTimeouts(),
        BodyLimits(timeout_seconds=SOON, min_bytes_per_second=10),
    )
    began = now()
    part = {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(ReadTimeout):
        await read_body(told(part), {}, 100, limits, read_timeouts)
    assert now() - began >= SOON + 0.1
