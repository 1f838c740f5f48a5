"""What every Receipts must do: one request has the key, and its answer is found again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.support.commits import (
    ACME,
    AGENT,
    GLOBEX,
    NOW,
    RULES,
    SOUL,
    assert_applied,
    commit,
    put_text,
    try_write,
    write,
)
from tests.support.contract_stores import Ports

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
    ports: Ports, key: IdempotencyKey = KEY, fingerprint: str = "f", now: int = NOW, stale: int = 0
) -> Claim:
    return await ports.idempotency.claim(key, fingerprint, now, stale)


async def test_the_first_takes_the_key_and_the_next_waits(ports: Ports) -> None:
    assert await claim(ports) == Claimed()
    assert await claim(ports) == InProgress()


async def test_of_many_with_the_same_key_exactly_one_takes_it(ports: Ports) -> None:
    claims = await asyncio.gather(*[claim(ports) for _ in range(32)])

    assert claims.count(Claimed()) == 1
    assert claims.count(InProgress()) == 31


async def test_keys_that_differ_in_anything_are_different(ports: Ports) -> None:
    others = [replace(KEY, tenant=GLOBEX), replace(KEY, endpoint="DELETE"), replace(KEY, key="k")]

    assert [await claim(ports, key) for key in (KEY, *others)] == [Claimed()] * 4
    assert [await claim(ports, key) for key in (KEY, *others)] == [InProgress()] * 4


async def test_another_request_with_the_same_key_is_a_mismatch_in_any_state(ports: Ports) -> None:
    await claim(ports)
    assert await claim(ports, fingerprint="g") == KeyMismatch()
    assert await claim(ports, fingerprint="g", stale=NOW + 1) == KeyMismatch()
    await put_text(ports, "kind", idempotency_key=KEY)
    assert await claim(ports, fingerprint="g") == KeyMismatch()
    await ports.idempotency.complete(KEY, ANSWER)
    assert await claim(ports, fingerprint="g") == KeyMismatch()


async def test_a_settled_key_gives_its_answer_for_ever(ports: Ports) -> None:
    await claim(ports)
    await ports.idempotency.complete(KEY, ANSWER)

    assert await claim(ports) == Completed(ANSWER)
    assert await claim(ports, now=NOW + 9, stale=NOW + 5) == Completed(ANSWER)


async def test_settling_what_is_settled_changes_nothing(ports: Ports) -> None:
    await claim(ports)
    await ports.idempotency.complete(KEY, ANSWER)
    await ports.idempotency.complete(KEY, StoredResponse(500, "other"))

    assert await claim(ports) == Completed(ANSWER)


async def test_a_claim_that_was_never_settled_can_be_taken_over_when_it_is_old(
    ports: Ports,
) -> None:
    await claim(ports, now=NOW)

    assert await claim(ports, now=NOW + 10, stale=NOW) == InProgress()
    assert await claim(ports, now=NOW + 10, stale=NOW + 1) == Claimed()
    assert await claim(ports, now=NOW + 11, stale=NOW + 10) == InProgress()


async def test_of_many_who_take_over_an_old_claim_exactly_one_does(ports: Ports) -> None:
    await claim(ports, now=NOW)

    claims = await asyncio.gather(
        *[claim(ports, now=NOW + 100 + n, stale=NOW + 50) for n in range(16)]
    )

    assert claims.count(Claimed()) == 1
    assert claims.count(InProgress()) == 15


async def test_a_commit_marks_the_key_with_the_versions_that_came_of_it(ports: Ports) -> None:
    await put_text(ports, "before")
    await claim(ports)
    writes = [await write(ports, "kind"), await write(ports, "strict", path=RULES)]

    [outcome] = await ports.trees.commit([commit(*writes, idempotency_key=KEY)])

    assert [head.version for head in assert_applied(outcome).heads] == [2, 1]
    assert await claim(ports) == Committed((2, 1))


async def test_a_commit_without_writes_marks_the_key_too(ports: Ports) -> None:
    await claim(ports)
    await ports.trees.commit([commit(idempotency_key=KEY)])

    assert await claim(ports) == Committed(())


async def test_a_mark_survives_age_and_being_dropped(ports: Ports) -> None:
    await claim(ports)
    await put_text(ports, "kind", idempotency_key=KEY)

    await ports.idempotency.release(KEY)

    assert await claim(ports, now=NOW + 100, stale=NOW + 50) == Committed((1,))


async def test_a_marked_key_can_be_settled(ports: Ports) -> None:
    await claim(ports)
    await put_text(ports, "kind", idempotency_key=KEY)
    await ports.idempotency.complete(KEY, ANSWER)

    assert await claim(ports) == Completed(ANSWER)


async def test_a_refused_commit_marks_nothing(ports: Ports) -> None:
    await claim(ports)
    await try_write(ports, "kind", idempotency_key=KEY, expects=(Expect(AGENT, SOUL, 5),))

    assert await claim(ports) == InProgress()


async def test_a_commit_marks_no_key_but_its_own(ports: Ports) -> None:
    others = [replace(KEY, key="key-2"), replace(KEY, tenant=GLOBEX), replace(KEY, endpoint="E")]
    for key in (KEY, *others):
        await claim(ports, key)

    await put_text(ports, "kind", idempotency_key=KEY)

    assert [await claim(ports, key) for key in others] == [InProgress()] * 3


async def test_a_dropped_key_can_be_taken_by_anybody(ports: Ports) -> None:
    await claim(ports)
    await ports.idempotency.release(KEY)
    await ports.idempotency.release(replace(KEY, key="never claimed"))

    assert await claim(ports, fingerprint="another") == Claimed()
