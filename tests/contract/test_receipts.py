"""What every Receipts must do: one request has the key, and its answer is found again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.contract.scenes import (
    ACME,
    AGENT,
    GLOBEX,
    NOW,
    RULES,
    SOUL,
    applied,
    attempt,
    commit,
    say,
    write,
)
from tests.contract.worlds import World

from carrel.core.store.idempotency import (
    Claim,
    Claimed,
    Committed,
    Completed,
    InProgress,
    KeyMismatch,
    StoredResponse,
)
from carrel.core.store.tree import Expect, IdempotencyKey

pytestmark = pytest.mark.anyio

KEY = IdempotencyKey(ACME, "PUT /files/SOUL.md", "key-1")
ANSWER = StoredResponse(200, "sealed ✓")


async def claim(
    world: World, key: IdempotencyKey = KEY, fingerprint: str = "f", now: int = NOW, stale: int = 0
) -> Claim:
    return await world.receipts.claim(key, fingerprint, now, stale)


async def test_the_first_takes_the_key_and_the_next_waits(world: World) -> None:
    assert await claim(world) == Claimed()
    assert await claim(world) == InProgress()


async def test_of_many_with_the_same_key_exactly_one_takes_it(world: World) -> None:
    claims = await asyncio.gather(*[claim(world) for _ in range(32)])

    assert claims.count(Claimed()) == 1
    assert claims.count(InProgress()) == 31


async def test_keys_that_differ_in_anything_are_different(world: World) -> None:
    others = [replace(KEY, tenant=GLOBEX), replace(KEY, endpoint="DELETE"), replace(KEY, key="k")]

    assert [await claim(world, key) for key in (KEY, *others)] == [Claimed()] * 4
    assert [await claim(world, key) for key in (KEY, *others)] == [InProgress()] * 4


async def test_another_request_with_the_same_key_is_a_mismatch_in_any_state(world: World) -> None:
    await claim(world)
    assert await claim(world, fingerprint="g") == KeyMismatch()
    assert await claim(world, fingerprint="g", stale=NOW + 1) == KeyMismatch()
    await say(world, "kind", receipt=KEY)
    assert await claim(world, fingerprint="g") == KeyMismatch()
    await world.receipts.settle(KEY, ANSWER)
    assert await claim(world, fingerprint="g") == KeyMismatch()


async def test_a_settled_key_gives_its_answer_for_ever(world: World) -> None:
    await claim(world)
    await world.receipts.settle(KEY, ANSWER)

    assert await claim(world) == Completed(ANSWER)
    assert await claim(world, now=NOW + 9, stale=NOW + 5) == Completed(ANSWER)


async def test_settling_what_is_settled_changes_nothing(world: World) -> None:
    await claim(world)
    await world.receipts.settle(KEY, ANSWER)
    await world.receipts.settle(KEY, StoredResponse(500, "other"))

    assert await claim(world) == Completed(ANSWER)


async def test_a_claim_that_was_never_settled_can_be_taken_over_when_it_is_old(
    world: World,
) -> None:
    await claim(world, now=NOW)

    assert await claim(world, now=NOW + 10, stale=NOW) == InProgress()
    assert await claim(world, now=NOW + 10, stale=NOW + 1) == Claimed()
    assert await claim(world, now=NOW + 11, stale=NOW + 10) == InProgress()


async def test_of_many_who_take_over_an_old_claim_exactly_one_does(world: World) -> None:
    await claim(world, now=NOW)

    claims = await asyncio.gather(
        *[claim(world, now=NOW + 100 + n, stale=NOW + 50) for n in range(16)]
    )

    assert claims.count(Claimed()) == 1
    assert claims.count(InProgress()) == 15


async def test_a_commit_marks_the_key_with_the_versions_that_came_of_it(world: World) -> None:
    await say(world, "before")
    await claim(world)
    writes = [await write(world, "kind"), await write(world, "strict", path=RULES)]

    [outcome] = await world.trees.commit([commit(*writes, receipt=KEY)])

    assert [head.version for head in applied(outcome).heads] == [2, 1]
    assert await claim(world) == Committed((2, 1))


async def test_a_commit_without_writes_marks_the_key_too(world: World) -> None:
    await claim(world)
    await world.trees.commit([commit(receipt=KEY)])

    assert await claim(world) == Committed(())


async def test_a_mark_survives_age_and_being_dropped(world: World) -> None:
    await claim(world)
    await say(world, "kind", receipt=KEY)

    await world.receipts.drop(KEY)

    assert await claim(world, now=NOW + 100, stale=NOW + 50) == Committed((1,))


async def test_a_marked_key_can_be_settled(world: World) -> None:
    await claim(world)
    await say(world, "kind", receipt=KEY)
    await world.receipts.settle(KEY, ANSWER)

    assert await claim(world) == Completed(ANSWER)


async def test_a_refused_commit_marks_nothing(world: World) -> None:
    await claim(world)
    await attempt(world, "kind", receipt=KEY, expects=(Expect(AGENT, SOUL, 5),))

    assert await claim(world) == InProgress()


async def test_a_commit_marks_no_key_but_its_own(world: World) -> None:
    others = [replace(KEY, key="key-2"), replace(KEY, tenant=GLOBEX), replace(KEY, endpoint="E")]
    for key in (KEY, *others):
        await claim(world, key)

    await say(world, "kind", receipt=KEY)

    assert [await claim(world, key) for key in others] == [InProgress()] * 3


async def test_a_dropped_key_can_be_taken_by_anybody(world: World) -> None:
    await claim(world)
    await world.receipts.drop(KEY)
    await world.receipts.drop(replace(KEY, key="never claimed"))

    assert await claim(world, fingerprint="another") == Claimed()
