"""Asking once for what many want."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.server.graphql.batch_loader import BatchLoader

pytestmark = pytest.mark.anyio


class Doubling:
    """Doubles numbers, all that are asked for at once; odd ones cannot be had."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    async def __call__(self, keys: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(keys))
        await asyncio.sleep(0)
        return [ValueError(key) if key % 2 else key * 2 for key in keys]


async def late(loader: BatchLoader[int, int], key: int, turns: int) -> int:
    """Whoever comes to ask only after something else."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return await loader.load(key)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=50))
def test_each_key_is_fetched_once_and_everybody_gets_their_own(keys: list[int]) -> None:
    fetch = Doubling()

    async def ask() -> list[int | BaseException]:
        loader = BatchLoader(fetch)
        wanted = (late(loader, key, place % 2) for place, key in enumerate(keys))
        return await asyncio.gather(*wanted, return_exceptions=True)

    for key, found in zip(keys, asyncio.run(ask()), strict=True):
        assert isinstance(found, ValueError) if key % 2 else found == key * 2
    assert len(fetch.batches) == 1
    assert sorted(fetch.batches[0]) == sorted(set(keys))


async def test_who_is_given_up_takes_nobody_along() -> None:
    loader = BatchLoader(Doubling())
    one, other = (asyncio.ensure_future(loader.load(2)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    assert await other == 4
    assert await loader.load(2) == 4


async def test_what_is_known_is_not_asked_for_and_what_fails_fails_for_all() -> None:
    fetch = Doubling()
    loader = BatchLoader(fetch)
    loader.prime(1, 2)
    assert await loader.load_many([1, 2, 2]) == [2, 4, 4]
    assert fetch.batches == [[2]]

    async def fail(keys: Sequence[int]) -> Sequence[int | Exception]:
        raise LookupError

    broken = BatchLoader(fail)
    found = await asyncio.gather(broken.load(1), broken.load(2), return_exceptions=True)
    assert [type(one) for one in found] == [LookupError] * 2
