"""A token opens something only if its issuer signed it, for us, for now; and keys may rotate."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, Key, RSAKey

from carrel.adapters.oidc import (
    INVALID_CREDENTIAL_MESSAGE,
    RETRY_DELAY_SECONDS,
    IssuerTrust,
    OidcIssuer,
    TokenClaims,
)
from carrel.core.errors import Unauthenticated

pytestmark = pytest.mark.anyio

AUDIENCE = "desk"
NOW = 1_800_000_000
SKEW = 60
EC = ECKey.generate_key("P-256", {"kid": "curved"})
ADA = TokenClaims("ada-1", "ada@acme.example", True)
rsa = cache(lambda kid: RSAKey.generate_key(2048, {"kid": kid}))  # made when first asked for
SIGNING = ["RS256", "RS384", "PS256", "ES256", "HS256"]
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Local:
    """An issuer on a loopback port: what it publishes, what it was asked, what time it is."""

    url: str = ""
    keys: list[Any] = field(default_factory=list)
    said: dict[str, bytes] = field(default_factory=dict)
    status: int = 200
    asked: list[str] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    wall: float = NOW
    steady: float = 0
    server: asyncio.Server | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        self.asked.append(path)
        self.heard.set()
        await self.gate.wait()
        found = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        known = json.dumps(found if path == DISCOVERY else {"keys": self.keys})
        body = self.said.get(path, known.encode())
        status = 302 if path == "/moved" else self.status
        head = f"HTTP/1.1 {status} Said\r\nconnection: close\r\nlocation: /jwks\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()

    async def open(self, port: int = 0) -> None:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        assert self.server is not None
        self.server.close()

    def publish(self, *keys: Key) -> None:
        self.keys = [key.as_dict(private=False) for key in keys]

    def token(self, key: Key | None = None, *, alg: str = "RS256", **claims: Any) -> str:
        """A token as it should be, but for the claims that are given; None leaves one out."""
        said: dict[str, Any] = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": ADA.sub,
            "email": ADA.email,
        }
        said |= {"email_verified": True, "iat": NOW, "exp": NOW + 300, **claims}
        return signed(key or rsa("first"), said, alg)

    def verifier(self, **trust: Any) -> OidcIssuer:
        trust = {
            "issuer": self.url,
            "audiences": frozenset({AUDIENCE}),
            "clock_skew_seconds": SKEW,
            **trust,
        }
        return OidcIssuer(
            IssuerTrust(**trust), wall_clock=lambda: self.wall, monotonic=lambda: self.steady
        )


def signed(key: Key, claims: dict[str, Any], alg: str = "RS256", **header: Any) -> str:
    kept = {name: value for name, value in claims.items() if value is not None}
    lenient = jws.JWSRegistry(algorithms=SIGNING, strict_check_header=False)
    head = {"alg": alg, "kid": key.kid, **header}
    return jws.serialize_compact(head, json.dumps(kept), key, registry=lenient)


def encoded(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def refused(verifier: OidcIssuer, token: str) -> None:
    with pytest.raises(Unauthenticated) as reason:
        await verifier.claims(token)
    assert str(reason.value) == INVALID_CREDENTIAL_MESSAGE
    assert not reason.value.details


@pytest.fixture
async def local() -> AsyncIterator[Local]:
    made = Local()
    made.gate.set()
    made.publish(rsa("first"))
    await made.open()
    yield made
    made.close()


async def test_a_good_token_says_who_its_bearer_is(local: Local) -> None:
    verifier = local.verifier()
    assert await verifier.claims(local.token()) == ADA
    assert verifier.name == local.url
    assert local.asked == [DISCOVERY, "/jwks"]


async def test_keys_are_kept_for_as_long_as_they_are_known(local: Local) -> None:
    verifier = local.verifier(jwks_url=f"{local.url}/jwks")
    for days in range(3):
        local.steady = days * 86400
        assert await verifier.claims(local.token()) == ADA
    assert local.asked == ["/jwks"]


async def test_an_issuer_may_end_in_a_slash(local: Local) -> None:
    issuer = f"{local.url}/"
    said = {"issuer": issuer, "jwks_uri": f"{local.url}/jwks"}
    local.said[DISCOVERY] = json.dumps(said).encode()
    verifier = local.verifier(issuer=issuer)
    assert await verifier.claims(local.token(iss=issuer)) == ADA
    await refused(verifier, local.token())


async def test_an_address_is_verified_only_where_the_token_says_so(local: Local) -> None:
    verifier = local.verifier()
    for said in (True, "true", False, "false", "yes", None):
        claims = await verifier.claims(local.token(email_verified=said))
        assert claims == TokenClaims(ADA.sub, ADA.email, said in (True, "true"))
    assert (await verifier.claims(local.token(email=None))).email is None


async def test_a_cognito_access_token_names_its_client_instead_of_an_audience(local: Local) -> None:
    verifier = local.verifier()
    access: dict[str, Any] = {
        "aud": None,
        "email": None,
        "client_id": AUDIENCE,
        "token_use": "access",
    }
    assert (await verifier.claims(local.token(**access))).sub == ADA.sub
    await verifier.claims(local.token(token_use="id"))
    for name, wrong in (("token_use", "id"), ("token_use", None), ("client_id", "other")):
        await refused(verifier, local.token(**access | {name: wrong}))
    await refused(verifier, local.token(**access | {"aud": "other"}))
    await refused(verifier, local.token(token_use="refresh"))


async def test_we_may_be_one_of_several_audiences(local: Local) -> None:
    verifier = local.verifier()
    for audience in (["other", AUDIENCE], [AUDIENCE], AUDIENCE):
        assert await verifier.claims(local.token(aud=audience)) == ADA


async def test_a_new_key_is_found_at_once_and_a_withdrawn_one_is_refused_from_then_on(
    local: Local,
) -> None:
    verifier = local.verifier()
    old = local.token()
    await verifier.claims(old)
    local.publish(rsa("second"))
    local.steady += RETRY_DELAY_SECONDS
    assert await verifier.claims(local.token(rsa("second"))) == ADA
    local.steady += RETRY_DELAY_SECONDS
    await refused(verifier, old)


async def test_tokens_that_name_unknown_keys_cause_one_fetch_in_ten_seconds(local: Local) -> None:
    verifier = local.verifier(jwks_url=f"{local.url}/jwks")
    strange = [signed(rsa("strange"), {}, kid=f"{number}") for number in range(5)]
    for moment, fetches in (
        (0, 1),
        (RETRY_DELAY_SECONDS - 0.001, 1),
        (RETRY_DELAY_SECONDS, 2),
        (RETRY_DELAY_SECONDS * 2 - 0.001, 2),
    ):
        local.steady = moment
        for token in strange:
            await refused(verifier, token)
        assert len(local.asked) == fetches


async def test_those_who_wait_for_keys_share_one_fetch_even_if_the_first_leaves(
    local: Local,
) -> None:
    verifier = local.verifier(jwks_url=f"{local.url}/jwks")
    local.gate.clear()
    waiting = [asyncio.create_task(verifier.claims(local.token())) for _ in range(20)]
    await local.heard.wait()
    waiting[0].cancel()
    local.steady = RETRY_DELAY_SECONDS
    waiting.append(asyncio.create_task(verifier.claims(local.token())))
    await asyncio.sleep(0)
    local.gate.set()
    first, *others = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError)
    assert others == [ADA] * 20
    assert len(local.asked) == 1


async def test_a_clock_may_be_off_by_the_skew_and_no_more(local: Local) -> None:
    verifier = local.verifier()
    good: list[Any] = [{"exp": NOW - SKEW + 0.5}, {"iat": NOW + SKEW}, {"nbf": NOW + SKEW}]
    bad: list[Any] = [{"exp": NOW - SKEW}, {"iat": NOW + SKEW + 1}, {"nbf": NOW + SKEW + 1}]
    for claims in good:
        assert await verifier.claims(local.token(**claims)) == ADA
    for claims in bad:
        await refused(verifier, local.token(**claims))
    local.wall = NOW + 300 + SKEW
    await refused(verifier, local.token())


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
async def test_a_token_with_a_wrong_or_missing_claim_is_refused(local: Local, name: str) -> None:
    verifier = local.verifier()
    for wrong in WRONG[name]:
        await refused(verifier, local.token(**{name: wrong}))


async def test_a_token_that_nobody_signed_is_refused(local: Local) -> None:
    verifier = local.verifier()
    _, payload, signature = local.token().split(".")
    for alg in ("none", "None", "NONE", "nOnE", ""):
        header = encoded({"alg": alg, "kid": "first"})
        await refused(verifier, f"{header}.{payload}.")
        await refused(verifier, f"{header}.{payload}.{signature}")
    assert not local.asked


async def test_a_public_key_is_no_shared_secret(local: Local) -> None:
    verifier = local.verifier()
    await verifier.claims(local.token())
    payload = local.token().split(".")[1]
    for secret in (rsa("first").as_pem(private=False), rsa("first").as_der(private=False)):
        for alg in ("HS256", "HS384", "HS512"):
            said = f"{encoded({'alg': alg, 'kid': 'first'})}.{payload}"
            mark = hmac.digest(secret, said.encode(), f"sha{alg[2:]}")
            await refused(verifier, f"{said}.{encoded(mark)}")


async def test_only_pinned_algorithms_are_taken(local: Local) -> None:
    local.publish(rsa("first"), EC)
    both = local.verifier(algorithms=frozenset({"RS256", "ES256"}))
    assert await both.claims(local.token()) == await both.claims(local.token(EC, alg="ES256"))
    for alg in ("RS384", "PS256"):
        await refused(both, local.token(alg=alg))
    await refused(local.verifier(), local.token(EC, alg="ES256"))
    await refused(local.verifier(algorithms=frozenset({"ES256"})), local.token())


async def test_a_key_is_used_only_for_what_it_was_published_for(local: Local) -> None:
    [plain] = local.keys
    spoiled = {"use": "enc", "alg": "RS512", "kid": 7, "kty": "oct", "n": "u" * 255 + "v"}
    plain["k"] = "c2VjcmV0"
    for name, value in spoiled.items():
        local.keys = [{**plain, name: value}]
        await refused(local.verifier(), local.token())
        local.keys.append(plain)
        assert await local.verifier().claims(local.token()) == ADA
    local.keys = [None, 7, {}, {"kty": "RSA", "kid": "x"}, {**plain, "e": "!", "kid": "y"}]
    local.keys.append({**plain, "use": "sig", "alg": "RS256"})
    assert await local.verifier().claims(local.token()) == ADA


async def test_a_token_cannot_bring_its_own_key_or_rules(local: Local) -> None:
    verifier = local.verifier()
    good = {"iss": local.url, "aud": AUDIENCE, "sub": "eve", "iat": NOW, "exp": NOW + 300}
    await verifier.claims(signed(rsa("first"), good, typ="JWT", odd=1))
    await refused(verifier, signed(rsa("strange"), good, kid="first", jku=f"{local.url}/eve"))
    await refused(verifier, signed(rsa("first"), good, b64=True))
    await refused(verifier, signed(rsa("first"), good, crit=["b64"], b64=True))
    assert "/eve" not in local.asked


async def test_what_was_tampered_with_is_refused(local: Local) -> None:
    verifier, token = local.verifier(), local.token()
    header, payload, signature = token.split(".")
    other = local.token(sub="eve").split(".")
    await verifier.claims(token)
    await refused(verifier, f"{header}.{other[1]}.{signature}")
    await refused(verifier, f"{header}.{payload}.{other[2]}")
    await refused(verifier, f"{header}.{payload}.")
    await refused(verifier, f"{header}.{payload}.{signature[:-4]}")
    await refused(verifier, f"{encoded({'kid': 'first', 'alg': 'RS256'})}.{payload}.{signature}")


HEADER = encoded({"alg": "RS256", "kid": "first"})
NESTED = encoded(b"[" * 10_000)
ODD = [[], 7, None, ["alg", "kid"], {}, {"alg": "RS256"}, {"alg": "RS256", "kid": 7}]
GARBAGE = [
    *("", ".", "..", "...", "a.b.c", "é.é.é", "\ud800.a.b", "\x00.\x00.\x00", "a b.c.d"),
    *(f"{HEADER}{rest}" for rest in ("", "..", ".a.b.c", ".é.a", ".a.\ud800", f".{NESTED}.AA")),
    *(f"{encoded(odd)}.e30.AA" for odd in ODD),
    *(f"{NESTED}.e30.AA", "a" * 10_000_000, f"{HEADER}.{'a' * 10_000_000}.AA"),
]


@pytest.mark.parametrize("token", GARBAGE, ids=lambda text: ascii(text[:24]))
async def test_garbage_is_refused(local: Local, token: str) -> None:
    await refused(local.verifier(), token)


async def test_a_token_that_is_too_long_is_refused_though_it_is_good(local: Local) -> None:
    verifier = local.verifier()
    await verifier.claims(local.token(more="a" * 8_000))
    await refused(verifier, local.token(more="a" * 16_000))


async def test_what_is_signed_and_yet_no_claims_is_refused(local: Local) -> None:
    verifier, header = local.verifier(), {"alg": "RS256", "kid": "first"}
    for payload in (b"", b"[]", b"7", b"{", b"\xff", b"[" * 5_000):
        await refused(verifier, jws.serialize_compact(header, payload, rsa("first")))
