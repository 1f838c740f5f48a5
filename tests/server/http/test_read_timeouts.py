"""Read timeouts: every wait ends at its own deadline."""

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


def start_wait(
    read_timeouts: ReadTimeouts, awaited: Awaitable[Any], seconds: float
) -> asyncio.Task[Any]:
    return asyncio.create_task(read_timeouts.wait_for(awaited, now() + seconds, abs(seconds)))


async def yield_to_loop(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def assert_idle(read_timeouts: ReadTimeouts) -> None:
    """Assert that no wait is registered and that the timer stops."""
    assert not read_timeouts._waiting
    assert not read_timeouts._expired
    if read_timeouts._timer is not None:
        timer_ran = asyncio.Event()
        asyncio.get_running_loop().call_at(read_timeouts._timer.when(), timer_ran.set)
        await timer_ran.wait()
        await yield_to_loop()
    assert read_timeouts._timer is None


async def test_a_result_before_the_deadline_is_returned() -> None:
    read_timeouts = ReadTimeouts()
    event = asyncio.Event()
    tasks = [start_wait(read_timeouts, event.wait(), LONG) for _ in range(50)]
    await yield_to_loop()
    event.set()

    assert await asyncio.gather(*tasks) == [True] * 50
    assert not read_timeouts._waiting


async def test_an_expired_wait_times_out_while_many_others_wait() -> None:
    read_timeouts, event = ReadTimeouts(), asyncio.Event()
    others = [start_wait(read_timeouts, event.wait(), LONG) for _ in range(300)]
    await yield_to_loop()
    late = [start_wait(read_timeouts, asyncio.Event().wait(), SOON) for _ in range(30)]

    async with asyncio.timeout(30):
        results = await asyncio.gather(*late, return_exceptions=True)

    assert {type(result) for result in results} == {TimeoutError}
    assert not any(other.done() for other in others)
    event.set()
    assert await asyncio.gather(*others) == [True] * 300
    await assert_idle(read_timeouts)


async def test_no_wait_times_out_before_its_deadline() -> None:
    read_timeouts, began = ReadTimeouts(), now()
    late = start_wait(read_timeouts, asyncio.Event().wait(), SOON * 4)

    with pytest.raises(TimeoutError):
        await late
    assert now() - began >= SOON * 4


async def test_a_cancelled_wait_is_not_a_timeout() -> None:
    read_timeouts = ReadTimeouts()
    task = start_wait(read_timeouts, asyncio.Event().wait(), LONG)
    await yield_to_loop()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not read_timeouts._waiting


@pytest.mark.parametrize("first", ["cancelled", "expired"])
async def test_a_wait_cancelled_as_it_expires_is_cancelled(first: str) -> None:
    read_timeouts = ReadTimeouts()
    task = start_wait(read_timeouts, asyncio.Event().wait(), -LONG)
    await yield_to_loop()
    if first == "cancelled":
        task.cancel()
    read_timeouts._cancel_expired()
    if first == "expired":
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not read_timeouts._waiting
    assert not read_timeouts._expired


async def test_a_result_that_arrives_as_the_wait_expires_is_a_timeout() -> None:
    read_timeouts, event = ReadTimeouts(), asyncio.Event()
    task = start_wait(read_timeouts, event.wait(), -LONG)
    await yield_to_loop()
    event.set()
    read_timeouts._cancel_expired()

    with pytest.raises(TimeoutError):
        await task


async def test_a_task_continues_and_can_be_cancelled_after_a_timeout() -> None:
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
        return "continued"

    assert await asyncio.create_task(request()) == "continued"
    await assert_idle(read_timeouts)


@pytest.mark.parametrize("fails", [True, False])
async def test_an_awaitable_that_handles_the_cancellation_leaves_none_pending(fails: bool) -> None:
    read_timeouts = ReadTimeouts()

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if fails:
                raise ConnectionError from None
        return "done"

    async def request() -> int:
        if fails:
            with pytest.raises(ConnectionError):
                await read_timeouts.wait_for(stubborn(), now(), SOON)
        else:
            assert await read_timeouts.wait_for(stubborn(), now(), SOON) == "done"
        task = asyncio.current_task()
        return -1 if task is None else task.cancelling()

    assert await asyncio.create_task(request()) == 0
    await assert_idle(read_timeouts)


async def test_a_task_that_survived_a_cancellation_still_times_out() -> None:
    read_timeouts = ReadTimeouts()

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await read_timeouts.wait_for(asyncio.Event().wait(), now(), SOON)

    task = asyncio.create_task(request())
    await yield_to_loop()
    task.cancel()
    with pytest.raises(TimeoutError):
        await task


async def test_a_shorter_timeout_expires_at_its_own_deadline() -> None:
    read_timeouts, event = ReadTimeouts(), asyncio.Event()
    long = start_wait(read_timeouts, event.wait(), LONG)
    await yield_to_loop()
    short = start_wait(read_timeouts, asyncio.Event().wait(), SOON)

    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError):
            await short
    event.set()
    assert await long


async def test_finished_tasks_are_not_retained() -> None:
    read_timeouts = ReadTimeouts()
    tasks = [start_wait(read_timeouts, asyncio.Event().wait(), SOON) for _ in range(20)]
    await yield_to_loop()
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    alive = weakref.WeakSet(tasks)
    tasks.clear()
    await assert_idle(read_timeouts)
    gc.collect()

    assert not alive


def scripted_receive(*messages: Mapping[str, Any]) -> Callable[[], Awaitable[Mapping[str, Any]]]:
    """An ASGI receive that returns these messages and then blocks."""
    remaining = list(messages)

    async def receive() -> Mapping[str, Any]:
        if not remaining:
            await asyncio.Event().wait()
        return remaining.pop(0)

    return receive


async def test_every_unfinished_body_times_out() -> None:
    read_timeouts, limits = (
        ReadTimeouts(),
        BodyLimits(timeout_seconds=SOON, min_bytes_per_second=10**6),
    )
    part = {"type": "http.request", "body": b"x", "more_body": True}
    bodies = [
        read_body(scripted_receive(*[part] * n), {}, 100, limits, read_timeouts) for n in range(40)
    ]

    async with asyncio.timeout(30):
        results = await asyncio.gather(*bodies, return_exceptions=True)

    assert {type(result) for result in results} == {ReadTimeout}
    await assert_idle(read_timeouts)


async def test_received_bytes_extend_the_body_deadline() -> None:
    read_timeouts, limits = (
        ReadTimeouts(),
        BodyLimits(timeout_seconds=SOON, min_bytes_per_second=10),
    )
    began = now()
    part = {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(ReadTimeout):
        await read_body(scripted_receive(part), {}, 100, limits, read_timeouts)
    assert now() - began >= SOON + 0.1
