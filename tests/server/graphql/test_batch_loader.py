"""Batch loading: one fetch for many loads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.server.graphql.batch_loader import BatchLoader

pytestmark = pytest.mark.anyio


class Doubling:
    """A batch fetch that doubles numbers and fails for odd ones."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    async def __call__(self, keys: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(keys))
        await asyncio.sleep(0)
        return [ValueError(key) if key % 2 else key * 2 for key in keys]


async def load_later(loader: BatchLoader[int, int], key: int, turns: int) -> int:
    """Load a key after this many turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return await loader.load(key)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=50))
def test_every_key_is_fetched_once_and_every_load_gets_its_result(keys: list[int]) -> None:
    fetch = Doubling()

    async def ask() -> list[int | BaseException]:
        loader = BatchLoader(fetch)
        loads = (load_later(loader, key, index % 2) for index, key in enumerate(keys))
        return await asyncio.gather(*loads, return_exceptions=True)

    for key, result in zip(keys, asyncio.run(ask()), strict=True):
        assert isinstance(result, ValueError) if key % 2 else result == key * 2
    assert len(fetch.batches) == 1
    assert sorted(fetch.batches[0]) == sorted(set(keys))


async def test_cancelling_one_load_does_not_cancel_the_others() -> None:
    loader = BatchLoader(Doubling())
    first, second = (asyncio.ensure_future(loader.load(2)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 4
    assert await loader.load(2) == 4


async def test_primed_keys_are_not_fetched_and_a_failed_batch_fails_every_load() -> None:
    fetch = Doubling()
    loader = BatchLoader(fetch)
    loader.prime(1, 2)
    assert await loader.load_many([1, 2, 2]) == [2, 4, 4]
    assert fetch.batches == [[2]]

    async def fail(keys: Sequence[int]) -> Sequence[int | Exception]:
        raise LookupError

    broken = BatchLoader(fail)
    results = await asyncio.gather(broken.load(1), broken.load(2), return_exceptions=True)
    assert [type(result) for result in results] == [LookupError] * 2
