"""Waits with a deadline."""

from __future__ import annotations

import pytest
from tests.support.wait import wait_until, wait_until_sync


@pytest.mark.anyio
async def test_it_waits_until_the_condition_is_true() -> None:
    results = iter([False, None, "yes"])
    await wait_until(lambda: next(results), "the third result")
    assert next(results, None) is None


@pytest.mark.anyio
async def test_the_condition_may_be_asynchronous() -> None:
    results = iter([False, True])

    async def condition() -> bool:
        return next(results)

    await wait_until(condition, "the second result")
    assert next(results, None) is None


@pytest.mark.anyio
async def test_the_error_names_what_was_awaited() -> None:
    with pytest.raises(AssertionError, match="not within 0 seconds: the file exists"):
        await wait_until(lambda: False, "the file exists", seconds=0)


def test_the_synchronous_form_has_the_same_deadline() -> None:
    results = iter([False, True])
    wait_until_sync(lambda: next(results), "the second result")
    with pytest.raises(AssertionError, match="not within 0 seconds: the file exists"):
        wait_until_sync(lambda: False, "the file exists", seconds=0)
