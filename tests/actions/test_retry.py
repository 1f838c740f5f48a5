"""Retry of actions after a concurrent change."""

from __future__ import annotations

import pytest

from carrel.actions.retry import MAX_ATTEMPTS, retry_on_conflict
from carrel.core.errors import Busy, Conflict, Refusal

pytestmark = pytest.mark.anyio


class Counter:
    """An action that raises its refusals in order, then returns its argument."""

    def __init__(self, *refusals: Refusal) -> None:
        self.refusals, self.calls = list(refusals), 0

    @retry_on_conflict()
    async def run(self, result: str) -> str:
        self.calls += 1
        if self.refusals:
            raise self.refusals.pop(0)
        return result

    @retry_on_conflict(3)
    async def run_thrice(self) -> None:
        self.calls += 1
        raise Busy(f"attempt {self.calls}")


async def test_a_conflict_runs_the_action_again_with_the_same_arguments() -> None:
    counter = Counter(Busy("first"), Busy("second"))
    assert await counter.run(result="done") == "done"
    assert counter.calls == 3


async def test_the_refusal_of_the_last_attempt_is_raised() -> None:
    counter = Counter(*[Busy(f"attempt {n}") for n in range(1, MAX_ATTEMPTS + 1)])
    with pytest.raises(Busy, match=f"attempt {MAX_ATTEMPTS}$"):
        await counter.run("done")
    assert counter.calls == MAX_ATTEMPTS


async def test_an_action_may_have_its_own_number_of_attempts() -> None:
    counter = Counter()
    with pytest.raises(Busy, match="attempt 3"):
        await counter.run_thrice()


async def test_other_refusals_are_not_retried() -> None:
    counter = Counter(Conflict("taken"))
    with pytest.raises(Conflict):
        await counter.run("done")
    assert counter.calls == 1


async def test_a_nested_action_is_not_attempted_again_by_its_caller() -> None:
    inner = Counter()

    @retry_on_conflict()
    async def run_outer() -> None:
        await inner.run_thrice()

    with pytest.raises(Busy, match=r"attempt 3$"):
        await run_outer()
    assert inner.calls == 3
