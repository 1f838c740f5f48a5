"""OIDC tokens: signature, audience, validity period and key rotation."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey
from tests.adapters.oidc_issuer import (
    ADA,
    AUDIENCE,
    DISCOVERY,
    NOW,
    SKEW,
    LocalIssuer,
    rsa,
    run_issuer,
    sign,
)

from carrel.adapters.oidc import (
    INVALID_CREDENTIAL_MESSAGE,
    RETRY_DELAY_SECONDS,
    OidcIssuer,
    TokenClaims,
)
from carrel.core.errors import Unauthenticated

pytestmark = pytest.mark.anyio

EC = ECKey.generate_key("P-256", {"kid": "curved"})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def encode(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def assert_refused(verifier: OidcIssuer, token: str) -> None:
    with pytest.raises(Unauthenticated) as reason:
        await verifier.claims(token)
    assert str(reason.value) == INVALID_CREDENTIAL_MESSAGE
    assert not reason.value.details


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with run_issuer() as running:
        yield running


async def test_valid_token_yields_its_claims(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    assert await verifier.claims(issuer.token()) == ADA
    assert verifier.name == issuer.url
    assert issuer.requests == [DISCOVERY, "/jwks"]


async def test_known_keys_are_cached_without_expiry(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier(jwks_url=f"{issuer.url}/jwks")
    for days in range(3):
        issuer.monotonic_seconds = days * 86400
        assert await verifier.claims(issuer.token()) == ADA
    assert issuer.requests == ["/jwks"]


async def test_issuer_may_end_in_a_slash(issuer: LocalIssuer) -> None:
    name = f"{issuer.url}/"
    configuration = {"issuer": name, "jwks_uri": f"{issuer.url}/jwks"}
    issuer.responses[DISCOVERY] = json.dumps(configuration).encode()
    verifier = issuer.verifier(issuer=name)
    assert await verifier.claims(issuer.token(iss=name)) == ADA
    await assert_refused(verifier, issuer.token())


async def test_email_is_verified_only_if_the_token_says_so(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    for claim in (True, "true", False, "false", "yes", None):
        claims = await verifier.claims(issuer.token(email_verified=claim))
        assert claims == TokenClaims(ADA.sub, ADA.email, claim in (True, "true"))
    assert (await verifier.claims(issuer.token(email=None))).email is None


async def test_cognito_access_token_has_a_client_id_instead_of_an_audience(
    issuer: LocalIssuer,
) -> None:
    verifier = issuer.verifier()
    access: dict[str, Any] = {
        "aud": None,
        "email": None,
        "client_id": AUDIENCE,
        "token_use": "access",
    }
    assert (await verifier.claims(issuer.token(**access))).sub == ADA.sub
    await verifier.claims(issuer.token(token_use="id"))
    for name, wrong in (("token_use", "id"), ("token_use", None), ("client_id", "other")):
        await assert_refused(verifier, issuer.token(**access | {name: wrong}))
    await assert_refused(verifier, issuer.token(**access | {"aud": "other"}))
    await assert_refused(verifier, issuer.token(token_use="refresh"))


async def test_one_of_several_audiences_is_sufficient(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    for audience in (["other", AUDIENCE], [AUDIENCE], AUDIENCE):
        assert await verifier.claims(issuer.token(aud=audience)) == ADA


async def test_new_key_is_accepted_at_once_and_withdrawn_key_is_refused_from_then_on(
    issuer: LocalIssuer,
) -> None:
    verifier = issuer.verifier()
    old = issuer.token()
    await verifier.claims(old)
    issuer.publish(rsa("second"))
    issuer.monotonic_seconds += RETRY_DELAY_SECONDS
    assert await verifier.claims(issuer.token(rsa("second"))) == ADA
    issuer.monotonic_seconds += RETRY_DELAY_SECONDS
    await assert_refused(verifier, old)


async def test_tokens_with_unknown_keys_cause_one_fetch_in_ten_seconds(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier(jwks_url=f"{issuer.url}/jwks")
    strange = [sign(rsa("strange"), {}, kid=f"{number}") for number in range(5)]
    for moment, fetches in (
        (0, 1),
        (RETRY_DELAY_SECONDS - 0.001, 1),
        (RETRY_DELAY_SECONDS, 2),
        (RETRY_DELAY_SECONDS * 2 - 0.001, 2),
    ):
        issuer.monotonic_seconds = moment
        for token in strange:
            await assert_refused(verifier, token)
        assert len(issuer.requests) == fetches


async def test_concurrent_waiters_share_one_fetch_even_if_the_first_is_cancelled(
    issuer: LocalIssuer,
) -> None:
    verifier = issuer.verifier(jwks_url=f"{issuer.url}/jwks")
    issuer.gate.clear()
    waiting = [asyncio.create_task(verifier.claims(issuer.token())) for _ in range(20)]
    await issuer.request_arrived.wait()
    waiting[0].cancel()
    issuer.monotonic_seconds = RETRY_DELAY_SECONDS
    waiting.append(asyncio.create_task(verifier.claims(issuer.token())))
    await asyncio.sleep(0)
    issuer.gate.set()
    first, *others = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError)
    assert others == [ADA] * 20
    assert len(issuer.requests) == 1


async def test_clock_may_differ_by_the_skew_and_no_more(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    good: list[Any] = [{"exp": NOW - SKEW + 0.5}, {"iat": NOW + SKEW}, {"nbf": NOW + SKEW}]
    bad: list[Any] = [{"exp": NOW - SKEW}, {"iat": NOW + SKEW + 1}, {"nbf": NOW + SKEW + 1}]
    for claims in good:
        assert await verifier.claims(issuer.token(**claims)) == ADA
    for claims in bad:
        await assert_refused(verifier, issuer.token(**claims))
    issuer.wall_seconds = NOW + 300 + SKEW
    await assert_refused(verifier, issuer.token())


WRONG: dict[str, list[Any]] = {
    "iss": [None, "http://127.0.0.1:1", "", ["http://127.0.0.1:1"], 7],
    "aud": [None, "other", "", [], ["other"], {AUDIENCE: 1}, [AUDIENCE, 7], "Desk"],
    "sub": [None, "", 7, "a" * 256, "a b", "a\x00", "é", "a\n", ["ada-1"]],
    "exp": [None, "1900000000", True, [], NOW - 3600, -1],
    "iat": [None, "now", NOW + 3600],
    "nbf": ["now", NOW + 3600],
    **{name: [7] for name in ("email", "email_verified", "client_id", "token_use")},
}


@pytest.mark.parametrize("name", WRONG)
async def test_token_with_a_wrong_or_missing_claim_is_refused(
    issuer: LocalIssuer, name: str
) -> None:
    verifier = issuer.verifier()
    for wrong in WRONG[name]:
        await assert_refused(verifier, issuer.token(**{name: wrong}))


async def test_unsigned_token_is_refused(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    _, payload, signature = issuer.token().split(".")
    for alg in ("none", "None", "NONE", "nOnE", ""):
        header = encode({"alg": alg, "kid": "first"})
        await assert_refused(verifier, f"{header}.{payload}.")
        await assert_refused(verifier, f"{header}.{payload}.{signature}")
    assert not issuer.requests


async def test_public_key_is_not_accepted_as_a_shared_secret(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    await verifier.claims(issuer.token())
    payload = issuer.token().split(".")[1]
    for secret in (rsa("first").as_pem(private=False), rsa("first").as_der(private=False)):
        for alg in ("HS256", "HS384", "HS512"):
            signed = f"{encode({'alg': alg, 'kid': 'first'})}.{payload}"
            mark = hmac.digest(secret, signed.encode(), f"sha{alg[2:]}")
            await assert_refused(verifier, f"{signed}.{encode(mark)}")


async def test_only_pinned_algorithms_are_accepted(issuer: LocalIssuer) -> None:
    issuer.publish(rsa("first"), EC)
    both = issuer.verifier(algorithms=frozenset({"RS256", "ES256"}))
    assert await both.claims(issuer.token()) == await both.claims(issuer.token(EC, alg="ES256"))
    for alg in ("RS384", "PS256"):
        await assert_refused(both, issuer.token(alg=alg))
    await assert_refused(issuer.verifier(), issuer.token(EC, alg="ES256"))
    await assert_refused(issuer.verifier(algorithms=frozenset({"ES256"})), issuer.token())


async def test_key_is_used_only_for_its_published_use(issuer: LocalIssuer) -> None:
    [plain] = issuer.keys
    spoiled = {"use": "enc", "alg": "RS512", "kid": 7, "kty": "oct", "n": "u" * 255 + "v"}
    plain["k"] = "c2VjcmV0"
    for name, value in spoiled.items():
        issuer.keys = [{**plain, name: value}]
        await assert_refused(issuer.verifier(), issuer.token())
        issuer.keys.append(plain)
        assert await issuer.verifier().claims(issuer.token()) == ADA
    issuer.keys = [None, 7, {}, {"kty": "RSA", "kid": "x"}, {**plain, "e": "!", "kid": "y"}]
    issuer.keys.append({**plain, "use": "sig", "alg": "RS256"})
    assert await issuer.verifier().claims(issuer.token()) == ADA


async def test_token_cannot_bring_its_own_key_or_rules(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    good = {"iss": issuer.url, "aud": AUDIENCE, "sub": "eve", "iat": NOW, "exp": NOW + 300}
    await verifier.claims(sign(rsa("first"), good, typ="JWT", odd=1))
    await assert_refused(verifier, sign(rsa("strange"), good, kid="first", jku=f"{issuer.url}/eve"))
    await assert_refused(verifier, sign(rsa("first"), good, b64=True))
    await assert_refused(verifier, sign(rsa("first"), good, crit=["b64"], b64=True))
    assert "/eve" not in issuer.requests


async def test_tampered_token_is_refused(issuer: LocalIssuer) -> None:
    verifier, token = issuer.verifier(), issuer.token()
    header, payload, signature = token.split(".")
    other = issuer.token(sub="eve").split(".")
    await verifier.claims(token)
    await assert_refused(verifier, f"{header}.{other[1]}.{signature}")
    await assert_refused(verifier, f"{header}.{payload}.{other[2]}")
    await assert_refused(verifier, f"{header}.{payload}.")
    await assert_refused(verifier, f"{header}.{payload}.{signature[:-4]}")
    await assert_refused(
        verifier, f"{encode({'kid': 'first', 'alg': 'RS256'})}.{payload}.{signature}"
    )


HEADER = encode({"alg": "RS256", "kid": "first"})
NESTED = encode(b"[" * 10_000)
ODD = [[], 7, None, ["alg", "kid"], {}, {"alg": "RS256"}, {"alg": "RS256", "kid": 7}]
GARBAGE = [
    *("", ".", "..", "...", "a.b.c", "é.é.é", "\ud800.a.b", "\x00.\x00.\x00", "a b.c.d"),
    *(f"{HEADER}{rest}" for rest in ("", "..", ".a.b.c", ".é.a", ".a.\ud800", f".{NESTED}.AA")),
    *(f"{encode(odd)}.e30.AA" for odd in ODD),
    *(f"{NESTED}.e30.AA", "a" * 10_000_000, f"{HEADER}.{'a' * 10_000_000}.AA"),
]


@pytest.mark.parametrize("token", GARBAGE, ids=lambda text: ascii(text[:24]))
async def test_garbage_is_refused(issuer: LocalIssuer, token: str) -> None:
    await assert_refused(issuer.verifier(), token)


async def test_valid_token_that_is_too_long_is_refused(issuer: LocalIssuer) -> None:
    verifier = issuer.verifier()
    await verifier.claims(issuer.token(more="a" * 8_000))
    await assert_refused(verifier, issuer.token(more="a" * 16_000))


async def test_signed_payload_without_claims_is_refused(issuer: LocalIssuer) -> None:
    verifier, header = issuer.verifier(), {"alg": "RS256", "kid": "first"}
    for payload in (b"", b"[]", b"7", b"{", b"\xff", b"[" * 5_000):
        await assert_refused(verifier, jws.serialize_compact(header, payload, rsa("first")))
