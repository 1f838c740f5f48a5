"""OIDC issuer that is down, fails or makes no sense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import Key, RSAKey

from carrel.adapters.oidc import (
    RETRY_DELAY_SECONDS,
    IssuerTrust,
    IssuerUnreachable,
    OidcIssuer,
    TokenClaims,
)

pytestmark = pytest.mark.anyio


AUDIENCE = "desk"


NOW = 1_800_000_000


SKEW = 60


ADA = TokenClaims("ada-1", "ada@acme.example", True)


rsa = cache(lambda kid: RSAKey.generate_key(2048, {"kid": kid}))  # made when first asked for


SIGNING = ["RS256", "RS384", "PS256", "ES256", "HS256"]


DISCOVERY = "/.well-known/openid-configuration"


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


@pytest.fixture
async def local() -> AsyncIterator[Local]:
    made = Local()
    made.gate.set()
    made.publish(rsa("first"))
    await made.open()
    yield made
    made.close()


async def test_while_the_issuer_is_down_nobody_can_tell(local: Local) -> None:
    verifier, port = local.verifier(), int(local.url.rpartition(":")[2])
    local.close()
    for _ in range(2):
        with pytest.raises(IssuerUnreachable) as reason:
            await verifier.claims(local.token())
        assert isinstance(reason.value, ConnectionError)
        assert ADA.sub not in str(reason.value)
    await local.open(port)
    with pytest.raises(IssuerUnreachable):
        await verifier.claims(local.token())
    assert not local.asked
    local.steady = RETRY_DELAY_SECONDS
    assert await verifier.claims(local.token()) == ADA


async def test_known_keys_go_on_working_while_the_issuer_is_down(local: Local) -> None:
    verifier = local.verifier()
    await verifier.claims(local.token())
    local.close()
    local.steady = RETRY_DELAY_SECONDS
    with pytest.raises(IssuerUnreachable):
        await verifier.claims(local.token(rsa("strange")))
    assert await verifier.claims(local.token()) == ADA


SENSELESS = [b"", b"{", b"[]", b"{}", b'{"keys":7}', b"\xff" * 9, b" " * 300_000 + b'{"keys":[]}']


@pytest.mark.parametrize("path", [DISCOVERY, "/jwks"])
async def test_an_issuer_that_makes_no_sense_is_as_good_as_down(local: Local, path: str) -> None:
    for said in SENSELESS:
        local.said[path] = said
        with pytest.raises(IssuerUnreachable):
            await local.verifier().claims(local.token())


@pytest.mark.parametrize("status", [204, 301, 404, 500])
async def test_an_issuer_that_fails_is_as_good_as_down(local: Local, status: int) -> None:
    local.status = status
    with pytest.raises(IssuerUnreachable):
        await local.verifier().claims(local.token())
    local.status = 200
    with pytest.raises(IssuerUnreachable):
        await local.verifier(jwks_url=f"{local.url}/moved").claims(local.token())
    assert "/jwks" not in local.asked


ELSEWHERE = [("issuer", "http://127.0.0.1:1"), ("jwks_uri", "no url"), ("jwks_uri", "file:///x")]


@pytest.mark.parametrize(("name", "value"), ELSEWHERE)
async def test_a_configuration_that_leads_elsewhere_is_not_followed(
    local: Local, name: str, value: str
) -> None:
    said = {"issuer": local.url, "jwks_uri": f"{local.url}/jwks", name: value}
    local.said[DISCOVERY] = json.dumps(said).encode()
    with pytest.raises(IssuerUnreachable):
        await local.verifier().claims(local.token())
