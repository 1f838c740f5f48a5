"""Failed authentications are limited per address; valid keys are not blocked with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from carrel.core.errors import TooManyAttempts, Unauthenticated
from carrel.core.outages import Unreachable
from carrel.ports.attempt_limiter import CLIENT_ADDRESS, AttemptLimiter

pytestmark = pytest.mark.anyio

KEY = "carrel_" + "k" * 43
CODE = "code_" + "c" * 43
CHOSEN_TOKEN = "a-token-of-your-own-choosing"
VALID = {KEY, CODE, CHOSEN_TOKEN}


class Attempts:
    """A limiter of ten a minute, with a clock of its own."""

    def __init__(self) -> None:
        self.time = 0.0
        self.checked: list[str] = []
        self.valid = {*VALID}
        self.limiter = AttemptLimiter(10, lambda: self.time)

    async def by(self, credential: str, address: str = "192.0.2.1") -> str:
        with client_at(address):
            try:
                return await self.limiter.limit(credential, lambda: self._check(credential))
            except TooManyAttempts as refusal:
                return f"429 in {refusal.details['retryAfterSeconds']}"
            except Unauthenticated:
                return "401"

    async def fail(self, times: int, address: str = "192.0.2.1") -> list[str]:
        return [await self.by(f"wrong {number}", address) for number in range(times)]

    async def _check(self, credential: str) -> str:
        self.checked.append(credential)
        await asyncio.sleep(0)
        if credential not in self.valid:
            raise Unauthenticated("unknown")
        return "200"


@contextmanager
def client_at(address: str) -> Iterator[None]:
    token = CLIENT_ADDRESS.set(address)
    try:
        yield
    finally:
        CLIENT_ADDRESS.reset(token)


async def test_failures_above_the_limit_are_refused_until_time_passes() -> None:
    attempts = Attempts()
    assert await attempts.fail(12) == ["401"] * 10 + ["429 in 6"] * 2
    attempts.time += 6
    assert await attempts.fail(2) == ["401", "429 in 6"]
    attempts.time += 60
    assert await attempts.fail(11) == ["401"] * 10 + ["429 in 6"]


async def test_a_token_that_may_be_guessed_is_not_checked_above_the_limit() -> None:
    attempts = Attempts()
    await attempts.fail(10)
    attempts.checked.clear()
    assert await attempts.by(CHOSEN_TOKEN) == "429 in 6"
    assert attempts.checked == []


async def test_guesses_at_the_same_time_are_limited() -> None:
    attempts = Attempts()
    answers = await asyncio.gather(*(attempts.by(f"wrong {number}") for number in range(100)))
    assert sorted(answers) == ["401"] * 10 + ["429 in 6"] * 90
    assert len(attempts.checked) == 10


@pytest.mark.parametrize("wrong", ["wrong", KEY.replace("k", "x"), "code_" + "x" * 43])
async def test_generated_keys_and_codes_are_valid_above_the_limit(wrong: str) -> None:
    attempts = Attempts()
    answers = [await attempts.by(wrong) for _ in range(11)]
    assert answers == ["401"] * 10 + ["429 in 6"]
    assert [await attempts.by(KEY), await attempts.by(CODE)] == ["200", "200"]


async def test_a_chosen_token_that_was_valid_before_is_valid_above_the_limit() -> None:
    attempts = Attempts()
    assert await attempts.by(CHOSEN_TOKEN) == "200"
    await attempts.fail(10)
    assert await attempts.by(CHOSEN_TOKEN) == "200"
    assert await attempts.by(CHOSEN_TOKEN, "192.0.2.2") == "200"


async def test_valid_credentials_use_up_no_attempts() -> None:
    attempts = Attempts()
    answers = [await attempts.by(token) for _ in range(20) for token in sorted(VALID)]
    assert set(answers) == {"200"}
    assert await attempts.fail(10) == ["401"] * 10


async def test_the_first_requests_of_a_valid_token_may_come_at_the_same_time() -> None:
    attempts = Attempts()
    answers = await asyncio.gather(*(attempts.by(CHOSEN_TOKEN) for _ in range(100)))
    assert set(answers) == {"200"}
    assert await attempts.fail(10) == ["401"] * 10


async def test_many_valid_tokens_may_come_from_one_address_at_the_same_time() -> None:
    attempts = Attempts()
    tokens = {f"token {number}" for number in range(100)}
    attempts.valid |= tokens
    assert {*await asyncio.gather(*map(attempts.by, sorted(tokens)))} == {"200"}
    assert await attempts.fail(10) == ["401"] * 10


async def test_a_valid_token_among_wrong_ones_at_the_same_time_is_valid() -> None:
    attempts = Attempts()
    wrong = [f"wrong {number}" for number in range(9)]
    answers = await asyncio.gather(*map(attempts.by, [*wrong, CHOSEN_TOKEN, CHOSEN_TOKEN]))
    assert answers == ["401"] * 9 + ["200"] * 2


async def test_a_client_that_disconnects_during_the_check_uses_up_no_attempt() -> None:
    attempts = Attempts()
    for _ in range(20):
        checks = [asyncio.create_task(attempts.by(CHOSEN_TOKEN)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in checks:
            task.cancel()
        await asyncio.wait(checks)
    assert await attempts.by(CHOSEN_TOKEN) == "200"
    assert await attempts.fail(10) == ["401"] * 10


async def test_one_wrong_token_many_times_at_once_uses_up_the_attempts() -> None:
    attempts = Attempts()
    answers = await asyncio.gather(*(attempts.by("wrong") for _ in range(100)))
    assert sorted(answers) == ["401"] * 10 + ["429 in 6"] * 90
    assert await attempts.by(CHOSEN_TOKEN) == "429 in 6"


async def test_a_check_that_an_outage_ends_uses_up_no_attempts() -> None:
    attempts = Attempts()

    async def fail() -> str:
        raise Unreachable("database", "ConnectionRefusedError")

    with client_at("192.0.2.1"):
        for _ in range(20):
            with pytest.raises(Unreachable):
                await attempts.limiter.limit(CHOSEN_TOKEN, fail)
    assert await attempts.fail(10) == ["401"] * 10


@pytest.mark.parametrize(
    ("other", "expected"),
    [("192.0.2.2", "401"), ("2001:db8:0:2::1", "401"), ("2001:db8:0:1:ffff::9", "429 in 6")],
)
async def test_addresses_are_counted_apart_and_networks_of_ipv6_together(
    other: str, expected: str
) -> None:
    attempts = Attempts()
    await attempts.fail(10, "2001:db8:0:1::1")
    assert await attempts.by("wrong", other) == expected


async def test_callers_in_the_same_process_are_not_limited() -> None:
    attempts = Attempts()
    assert await attempts.fail(20, "") == ["401"] * 20
