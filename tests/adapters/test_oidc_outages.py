"""OIDC issuers that are down, fail or respond with nonsense."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from tests.adapters.oidc_issuer import (
    ADA,
    DISCOVERY,
    LocalIssuer,
    rsa,
    run_issuer,
)

from carrel.adapters.oidc import (
    RETRY_DELAY_SECONDS,
    IssuerUnreachable,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with run_issuer() as running:
        yield running


async def test_token_cannot_be_verified_while_the_issuer_is_down(issuer: LocalIssuer) -> None:
    verifier, port = issuer.verifier(), int(issuer.url.rpartition(":")[2])
    issuer.close()
    for _ in range(2):
        with pytest.raises(IssuerUnreachable) as reason:
            await verifier.claims(issuer.token())
        assert isinstance(reason.value, ConnectionError)
        assert ADA.sub not in str(reason.value)
    await issuer.open(port)
    with pytest.raises(IssuerUnreachable):
        await verifier.claims(issuer.token())
    assert not issuer.requests
    issuer.monotonic_seconds = RETRY_DELAY_SECONDS
    assert await verifier.claims(issuer.token()) == ADA


async def test_cached_keys_work_while_the_issuer_is_down(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    await verifier.claims(issuer.token())
    issuer.close()
    issuer.monotonic_seconds = RETRY_DELAY_SECONDS
    with pytest.raises(IssuerUnreachable):
        await verifier.claims(issuer.token(rsa("strange")))
    assert await verifier.claims(issuer.token()) == ADA


INVALID_BODIES = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b'{"keys":7}',
    b"\xff" * 9,
    b" " * 300_000 + b'{"keys":[]}',
]


@pytest.mark.parametrize("path", [DISCOVERY, "/jwks"])
async def test_invalid_response_of_the_issuer_counts_as_unavailable(
    issuer: LocalIssuer, path: str
) -> None:
    for body in INVALID_BODIES:
        issuer.responses[path] = body
        with pytest.raises(IssuerUnreachable):
            await issuer.verifier().claims(issuer.token())


@pytest.mark.parametrize("status", [204, 301, 404, 500])
async def test_error_status_of_the_issuer_counts_as_unavailable(
    issuer: LocalIssuer, status: int
) -> None:
    issuer.status = status
    with pytest.raises(IssuerUnreachable):
        await issuer.verifier().claims(issuer.token())
    issuer.status = 200
    with pytest.raises(IssuerUnreachable):
        await issuer.verifier(jwks_url=f"{issuer.url}/moved").claims(issuer.token())
    assert "/jwks" not in issuer.requests


MISLEADING_VALUES = [
    ("issuer", "http://127.0.0.1:1"),
    ("jwks_uri", "no url"),
    ("jwks_uri", "file:///x"),
]


@pytest.mark.parametrize(("name", "value"), MISLEADING_VALUES)
async def test_configuration_for_another_issuer_or_url_is_refused(
    issuer: LocalIssuer, name: str, value: str
) -> None:
    configuration = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks", name: value}
    issuer.responses[DISCOVERY] = json.dumps(configuration).encode()
    with pytest.raises(IssuerUnreachable):
        await issuer.verifier().claims(issuer.token())
