"""Operations that run at most once per idempotency key."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import put_text
from tests.support.sample_endpoints import ADA, MovableClock, sample_ports
from tests.support.stores import open_ports

from carrel.actions.idempotency import (
    CLAIM_LEASE_MS,
    VAULT_CONTEXT,
    IdempotentOperation,
    json_codec,
    parse_key,
    run_once,
)
from carrel.core.errors import (
    Busy,
    IdempotencyInFlight,
    IdempotencyKeyMismatch,
    ValidationError,
)
from carrel.core.store.idempotency import Committed
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

OPERATION: IdempotentOperation[str] = IdempotentOperation(
    key=parse_key(ADA, ("test",), "k-1", "key"),
    fingerprint="same",
    codec=json_codec(str),
    mismatch=IdempotencyKeyMismatch("different request"),
    in_progress=IdempotencyInFlight("still in progress"),
    polls=False,
)


async def run(ports: Ports, result: str | Exception, **changes: Any) -> str:
    async def action() -> str:
        if isinstance(result, Exception):
            raise result
        return result

    return await run_once(ports, replace(OPERATION, **changes), action)


async def test_a_final_result_is_returned_again_without_running() -> None:
    ports = sample_ports()
    assert await run(ports, "first") == "first"
    assert await run(ports, "second") == "first"


async def test_a_different_fingerprint_is_refused() -> None:
    ports = sample_ports()
    await run(ports, "first")
    with pytest.raises(IdempotencyKeyMismatch, match="different request"):
        await run(ports, "second", fingerprint="other")


async def test_a_result_that_is_not_final_and_an_error_release_the_key() -> None:
    ports = sample_ports()
    with pytest.raises(Busy):
        await run(ports, Busy("later"))
    assert await run(ports, "temporary", is_final=lambda _: False) == "temporary"
    assert await run(ports, "final") == "final"


def stored(ports: Ports, operation: IdempotentOperation[str]) -> str:
    """The fingerprint as it is stored."""
    return ports.vault.encrypt_repeatably(operation.fingerprint, VAULT_CONTEXT)


@pytest.mark.parametrize("lease_ms", [CLAIM_LEASE_MS, None])
async def test_only_a_claim_with_a_lease_is_taken_over(lease_ms: int | None) -> None:
    clock = MovableClock()
    ports = sample_ports(clock)
    await ports.idempotency.claim(OPERATION.key, stored(ports, OPERATION), clock.now(), 0)
    with pytest.raises(IdempotencyInFlight):
        await run(ports, "early", lease_ms=lease_ms)
    clock.ahead += CLAIM_LEASE_MS + 1
    if lease_ms is None:
        with pytest.raises(IdempotencyInFlight):
            await run(ports, "late", lease_ms=lease_ms)
    else:
        assert await run(ports, "late", lease_ms=lease_ms) == "late"


async def test_an_error_without_a_lease_keeps_the_claim() -> None:
    ports = sample_ports()
    with pytest.raises(KeyError):
        await run(ports, KeyError("bug"), lease_ms=None)
    with pytest.raises(IdempotencyInFlight):
        await run(ports, "second", lease_ms=None)


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ü"])
def test_a_key_is_visible_ascii(key: str) -> None:
    with pytest.raises(ValidationError, match="an idempotencyKey is 1 to 255 visible ASCII"):
        parse_key(ADA, ("test",), key, "idempotencyKey")


async def test_a_rebuilt_result_that_lacks_parts_does_not_replace_the_first(tmp_path: File) -> None:
    async def rebuild(_: tuple[int, ...]) -> str:
        return "without its messages"

    operation = replace(OPERATION, rebuild=rebuild, stores_rebuilt=False)

    async with open_ports(tmp_path) as ports:

        async def repeat() -> str:
            return await run_once(ports, operation, repeat)

        async def commit() -> str:
            await put_text(ports, "x", idempotency_key=operation.key)
            assert await repeat() == "without its messages"
            claim = await ports.idempotency.claim(operation.key, stored(ports, operation), 0, 0)
            assert isinstance(claim, Committed), "nothing is stored yet"
            return "with its messages"

        assert await run_once(ports, operation, commit) == "with its messages"
        assert await repeat() == "with its messages"
