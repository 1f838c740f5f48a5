"""OIDC issuer on a loopback port, with settable keys, responses and clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from joserfc import jws
from joserfc.jwk import Key, RSAKey

from carrel.adapters.oidc import IssuerTrust, OidcIssuer, TokenClaims

AUDIENCE = "console"
NOW = 1_800_000_000
SKEW = 60
ADA = TokenClaims("ada-1", "ada@acme.example", True)
rsa = cache(lambda kid: RSAKey.generate_key(2048, {"kid": kid}))  # generated on first use
SIGNING = ["RS256", "RS384", "PS256", "ES256", "HS256"]
DISCOVERY = "/.well-known/openid-configuration"


@dataclass
class LocalIssuer:
    """An issuer that records the paths of its requests."""

    url: str = ""
    keys: list[Any] = field(default_factory=list)
    responses: dict[str, bytes] = field(default_factory=dict)
    status: int = 200
    requests: list[str] = field(default_factory=list)
    request_arrived: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    wall_seconds: float = NOW
    monotonic_seconds: float = 0
    server: asyncio.Server | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        self.requests.append(path)
        self.request_arrived.set()
        await self.gate.wait()
        configuration = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        default = json.dumps(configuration if path == DISCOVERY else {"keys": self.keys})
        body = self.responses.get(path, default.encode())
        status = 302 if path == "/moved" else self.status
        head = f"HTTP/1.1 {status} Status\r\nconnection: close\r\nlocation: /jwks\r\n"
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
        """A valid token with these claims changed; None removes a claim."""
        payload: dict[str, Any] = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": ADA.sub,
            "email": ADA.email,
        }
        payload |= {"email_verified": True, "iat": NOW, "exp": NOW + 300, **claims}
        return sign(key or rsa("first"), payload, alg)

    def verifier(self, **trust: Any) -> OidcIssuer:
        trust = {
            "issuer": self.url,
            "audiences": frozenset({AUDIENCE}),
            "clock_skew_seconds": SKEW,
            **trust,
        }
        return OidcIssuer(
            IssuerTrust(**trust),
            wall_clock=lambda: self.wall_seconds,
            monotonic=lambda: self.monotonic_seconds,
        )


def sign(key: Key, claims: dict[str, Any], alg: str = "RS256", **header: Any) -> str:
    present = {name: value for name, value in claims.items() if value is not None}
    lenient = jws.JWSRegistry(algorithms=SIGNING, strict_check_header=False)
    head = {"alg": alg, "kid": key.kid, **header}
    return jws.serialize_compact(head, json.dumps(present), key, registry=lenient)


@asynccontextmanager
async def run_issuer() -> AsyncIterator[LocalIssuer]:
    issuer = LocalIssuer()
    issuer.gate.set()
    issuer.publish(rsa("first"))
    await issuer.open()
    yield issuer
    issuer.close()
