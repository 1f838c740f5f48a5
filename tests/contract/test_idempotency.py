"""Contract of IdempotencyStore: one claim per key and a stored response."""

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
    new_run,
    put_text,
    try_write,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.runs import Audience
from carrel.core.sessions.session import Session
from carrel.core.store.commit import Expect
from carrel.core.store.idempotency import (
    Claim,
    Claimed,
    Committed,
    Completed,
    IdempotencyKey,
    InProgress,
    KeyMismatch,
    StoredResponse,
    id_from_number,
    number_from_id,
)

pytestmark = pytest.mark.anyio

KEY = IdempotencyKey(ACME, "PUT /files/SOUL.md", "key-1")
ANSWER = StoredResponse(200, "sealed ✓")


async def claim(
    ports: Ports, key: IdempotencyKey = KEY, fingerprint: str = "f", now: int = NOW, stale: int = 0
) -> Claim:
    return await ports.idempotency.claim(key, fingerprint, now, stale)


async def test_the_first_request_claims_the_key_and_the_next_sees_it_in_progress(
    ports: Ports,
) -> None:
    assert await claim(ports) == Claimed()
    assert await claim(ports) == InProgress()


async def test_of_many_requests_with_one_key_exactly_one_claims_it(ports: Ports) -> None:
    claims = await asyncio.gather(*[claim(ports) for _ in range(32)])

    assert claims.count(Claimed()) == 1
    assert claims.count(InProgress()) == 31


async def test_keys_that_differ_in_any_field_are_different(ports: Ports) -> None:
    others = [replace(KEY, tenant=GLOBEX), replace(KEY, endpoint="DELETE"), replace(KEY, key="k")]

    assert [await claim(ports, key) for key in (KEY, *others)] == [Claimed()] * 4
    assert [await claim(ports, key) for key in (KEY, *others)] == [InProgress()] * 4


async def test_another_fingerprint_with_the_same_key_is_a_mismatch_in_any_state(
    ports: Ports,
) -> None:
    await claim(ports)
    assert await claim(ports, fingerprint="g") == KeyMismatch()
    assert await claim(ports, fingerprint="g", stale=NOW + 1) == KeyMismatch()
    await put_text(ports, "kind", idempotency_key=KEY)
    assert await claim(ports, fingerprint="g") == KeyMismatch()
    await ports.idempotency.complete(KEY, ANSWER)
    assert await claim(ports, fingerprint="g") == KeyMismatch()


async def test_a_completed_key_always_returns_its_response(ports: Ports) -> None:
    await claim(ports)
    await ports.idempotency.complete(KEY, ANSWER)

    assert await claim(ports) == Completed(ANSWER)
    assert await claim(ports, now=NOW + 9, stale=NOW + 5) == Completed(ANSWER)


async def test_completing_a_completed_key_changes_nothing(ports: Ports) -> None:
    await claim(ports)
    await ports.idempotency.complete(KEY, ANSWER)
    await ports.idempotency.complete(KEY, StoredResponse(500, "other"))

    assert await claim(ports) == Completed(ANSWER)


async def test_an_old_unfinished_claim_can_be_taken_over(
    ports: Ports,
) -> None:
    await claim(ports, now=NOW)

    assert await claim(ports, now=NOW + 10, stale=NOW) == InProgress()
    assert await claim(ports, now=NOW + 10, stale=NOW + 1) == Claimed()
    assert await claim(ports, now=NOW + 11, stale=NOW + 10) == InProgress()


async def test_of_many_takeovers_of_an_old_claim_exactly_one_succeeds(ports: Ports) -> None:
    await claim(ports, now=NOW)

    claims = await asyncio.gather(
        *[claim(ports, now=NOW + 100 + n, stale=NOW + 50) for n in range(16)]
    )

    assert claims.count(Claimed()) == 1
    assert claims.count(InProgress()) == 15


async def test_a_commit_records_its_versions_with_the_key(ports: Ports) -> None:
    await put_text(ports, "before")
    await claim(ports)
    writes = [await write(ports, "kind"), await write(ports, "strict", path=RULES)]

    [outcome] = await ports.trees.commit([commit(*writes, idempotency_key=KEY)])

    assert [head.version for head in assert_applied(outcome).heads] == [2, 1]
    assert await claim(ports) == Committed((2, 1), revision=2)


async def test_a_commit_without_writes_is_recorded_with_the_key(ports: Ports) -> None:
    await claim(ports)
    await ports.trees.commit([commit(idempotency_key=KEY)])

    assert await claim(ports) == Committed(())


async def test_a_committed_key_survives_age_and_release(ports: Ports) -> None:
    await claim(ports)
    await put_text(ports, "kind", idempotency_key=KEY)

    await ports.idempotency.release(KEY)

    assert await claim(ports, now=NOW + 100, stale=NOW + 50) == Committed((1,), revision=1)


async def test_a_committed_key_can_be_completed(ports: Ports) -> None:
    await claim(ports)
    await put_text(ports, "kind", idempotency_key=KEY)
    await ports.idempotency.complete(KEY, ANSWER)

    assert await claim(ports) == Completed(ANSWER)


async def test_a_refused_commit_records_nothing_with_the_key(ports: Ports) -> None:
    await claim(ports)
    await try_write(ports, "kind", idempotency_key=KEY, expects=(Expect(AGENT, SOUL, 5),))

    assert await claim(ports) == InProgress()


async def test_a_commit_records_only_its_own_key(ports: Ports) -> None:
    others = [replace(KEY, key="key-2"), replace(KEY, tenant=GLOBEX), replace(KEY, endpoint="E")]
    for key in (KEY, *others):
        await claim(ports, key)

    await put_text(ports, "kind", idempotency_key=KEY)

    assert [await claim(ports, key) for key in others] == [InProgress()] * 3


async def test_a_released_key_can_be_claimed_by_another_request(ports: Ports) -> None:
    await claim(ports)
    await ports.idempotency.release(KEY)
    await ports.idempotency.release(replace(KEY, key="never claimed"))

    assert await claim(ports, fingerprint="another") == Claimed()


async def test_a_start_of_runs_marks_the_key_with_their_numbers(ports: Ports) -> None:
    await claim(ports)
    await ports.runs.start([(new_run("run_00ff"), [AGENT])])
    assert await claim(ports, stale=0) == InProgress()

    await ports.runs.start([(new_run(id_from_number("run", 2**95)), [AGENT])], KEY)

    assert await claim(ports) == Committed((2**95,))
    await ports.idempotency.release(KEY)
    assert await claim(ports) == Committed((2**95,))


async def test_a_start_that_failed_marks_nothing(ports: Ports) -> None:
    await claim(ports)
    taken = [(new_run("run_00ff"), [AGENT])]
    await ports.runs.start(taken)

    with pytest.raises(Exception):  # noqa: B017  # each store has its own
        await ports.runs.start(taken, KEY)

    assert await claim(ports) == InProgress()


async def test_a_mark_is_removed_unless_the_key_is_completed(ports: Ports) -> None:
    await claim(ports)
    await ports.runs.start([(new_run("run_00ff"), [AGENT])], KEY)

    await ports.idempotency.unmark(KEY)

    assert await claim(ports) == InProgress()
    await ports.idempotency.complete(KEY, ANSWER)
    await ports.idempotency.unmark(KEY)
    assert await claim(ports) == Completed(ANSWER)


async def test_a_start_of_sessions_marks_the_key_with_the_new_ones(ports: Ports) -> None:
    talk = Session(ACME, "f0000000-0000-4000-8000-000000000001", "kate", Audience.MAIN, "", NOW)
    number = number_from_id(talk.id)
    for created in (1, 0):
        key = replace(KEY, key=f"key {created}")
        await claim(ports, key)
        await ports.sessions.start([talk], key)
        assert await claim(ports, key) == Committed((created, number))
