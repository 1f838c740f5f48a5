"""Tokens of one OpenID Connect issuer: whose they are, by keys that the issuer publishes.

Keys are fetched when a token names one that is not known, and at no other time: not twice within
a few seconds, however many such tokens come, and once for all that wait.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import re
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn, TypeVar

import httpx
import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key
from msgspec import UNSET, Struct, UnsetType

from carrel.core.errors import Unauthenticated
from carrel.core.version import VERSION

Timer = Callable[[], float]
"""Seconds since whenever it began."""

KEY_TYPES: Final = {
    f"{family}{bits}": kind
    for family, kind in (("RS", "RSA"), ("PS", "RSA"), ("ES", "EC"))
    for bits in (256, 384, 512)
}
"""Every algorithm that may be pinned, and what its keys are: none can be checked without one, and
none takes a public key for a shared secret."""

REFUSED: Final = "the credential is missing, unknown, revoked or expired"
PAUSE: Final = 10.0
LONGEST_FETCH: Final = 8.0
MOST_READ: Final = 256 * 1024
_LONGEST_TOKEN: Final = 16 * 1024
_SHORTEST_MODULUS: Final = 342
"""2048 bits in base64; shorter keys can be broken."""
_SUBJECT: Final = re.compile(r"[!-~]{1,255}")
_HEADERS: Final = {"user-agent": f"carrel/{VERSION}", "accept-encoding": "identity"}
_BROKEN: Final = (JoseError, ValueError)
"""What comes of keys and tokens that are not what they claim to be."""

Document = TypeVar("Document", bound=Struct)


class IssuerUnreachable(ConnectionError):
    """The issuer does not do its part, so nobody can say whether a token is good."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EHOSTUNREACH, f"what the issuer says cannot be had: {reason}")


class IssuerMisconfigured(Exception):
    """What the issuer publishes cannot be had or used; the message says why."""

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused
        """Whether the issuer itself has said no."""


class IssuerTrust(Struct, frozen=True, kw_only=True):
    """Whose tokens are taken, and which of them."""

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str] = frozenset({"RS256"})
    jwks_url: str = ""
    """Where the keys are; empty asks the issuer."""
    skew: float = 60
    """How many seconds the issuer's clock and ours may be apart."""

    def __post_init__(self) -> None:
        if not self.issuer or not self.audiences or "" in self.audiences:
            raise ValueError("an issuer and an audience are needed")
        if not self.algorithms or self.algorithms - KEY_TYPES.keys():
            raise ValueError(f"algorithms must be some of {', '.join(KEY_TYPES)}")


class TokenClaims(Struct, frozen=True):
    """What a good token says of its bearer; nothing else in it is believed."""

    sub: str
    email: str | None
    email_verified: bool


class _Header(Struct, frozen=True):
    alg: str
    kid: str
    crit: Any = UNSET
    b64: Any = UNSET


class _Payload(Struct, frozen=True):
    iss: str
    sub: str
    exp: float
    iat: float
    nbf: float | None = None
    aud: str | list[str] | UnsetType = UNSET
    client_id: str | None = None
    token_use: str | UnsetType = UNSET
    email: str | None = None
    email_verified: bool | str | None = None


class _Discovered(Struct, frozen=True):
    issuer: str
    jwks_uri: str


class _Published(Struct, frozen=True):
    """What decides whether a key is used at all."""

    kty: str
    kid: str
    use: str = "sig"
    alg: str | None = None
    n: str = ""

    def fits(self, algorithms: frozenset[str]) -> bool:
        short = self.kty == "RSA" and len(self.n) < _SHORTEST_MODULUS
        return not short and self.use == "sig" and (self.alg is None or self.alg in algorithms)


class _KeySet(Struct, frozen=True):
    keys: list[Any]


class OidcIssuer:
    """Nothing stays open between two fetches, so it needs no closing."""

    def __init__(
        self,
        trust: IssuerTrust,
        *,
        wall: Timer = time.time,
        steady: Timer = time.monotonic,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._trust = trust
        self._wall = wall
        self._steady = steady
        self._tls = tls or default_tls_context()
        self._registry = jws.JWSRegistry(
            algorithms=sorted(trust.algorithms), strict_check_header=False
        )
        self._keys: Mapping[str, Key] = {}
        self._asked: float | None = None
        self._failure: str | None = None
        self._fetching: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._trust.issuer

    async def claims(self, token: str) -> TokenClaims:
        """What the token says, if it is good now.

        Raises Unauthenticated, saying nothing of why, or Unreachable.
        """
        kid = _named_key(token, self._trust.algorithms)
        if kid not in self._keys:
            await self._refresh()
        key = self._keys.get(kid)
        if key is None and self._failure is not None:
            raise IssuerUnreachable(self._failure)
        if key is None:
            _refuse()
        try:
            signed = jws.deserialize_compact(token, key, registry=self._registry)
            payload = msgspec.json.decode(signed.payload, type=_Payload)
        except _BROKEN:
            _refuse()
        if not acceptable(payload, self._trust, self._wall()):
            _refuse()
        return TokenClaims(payload.sub, payload.email, payload.email_verified in (True, "true"))

    async def _refresh(self) -> None:
        """Have the keys fetched if that is not too soon, and wait for a fetch that is under way."""
        now = self._steady()
        if self._fetching is None and (self._asked is None or now - self._asked >= PAUSE):
            self._asked = now
            self._fetching = asyncio.create_task(self._fetch())
        if self._fetching is not None:
            # One who waits may be cancelled; the others still want the keys.
            await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        """Replace all keys by those published now; keep the old ones if these cannot be had."""
        self._failure = "the attempt was broken off"
        try:
            async with asyncio.timeout(LONGEST_FETCH), client_of(self._tls) as client:
                url = self._trust.jwks_url or await self._discover(client)
                published = await fetch_json(client, url, _KeySet)
            self._keys = _usable(published.keys, self._trust.algorithms)
            self._failure = None
        except IssuerMisconfigured as problem:
            self._failure = str(problem)
        except TimeoutError:
            self._failure = "it does not answer in time"
        finally:
            self._fetching = None

    async def _discover(self, client: httpx.AsyncClient) -> str:
        issuer = self._trust.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        found = await fetch_json(client, url, _Discovered)
        if found.issuer != issuer:
            raise IssuerMisconfigured("its configuration is that of another issuer")
        if issuer.startswith("https://") and not found.jwks_uri.startswith("https://"):
            raise IssuerMisconfigured("its keys are at an address that is not secure")
        return found.jwks_uri


def acceptable(payload: _Payload, trust: IssuerTrust, now: float) -> bool:
    """Whether a token that the issuer has signed is for us, and for now."""
    return (
        payload.iss == trust.issuer
        and _SUBJECT.fullmatch(payload.sub) is not None
        and payload.token_use in (UNSET, "id", "access")
        and _is_meant_for(payload, trust.audiences)
        and now - trust.skew < payload.exp
        and max(payload.iat, payload.nbf or 0) <= now + trust.skew
    )


def _is_meant_for(payload: _Payload, audiences: frozenset[str]) -> bool:
    if payload.aud is not UNSET:
        named = [payload.aud] if isinstance(payload.aud, str) else payload.aud
        return not audiences.isdisjoint(named)
    # Access tokens of a Cognito pool have no audience: they name the client they were made for.
    return payload.token_use == "access" and payload.client_id in audiences


def _named_key(token: str, algorithms: frozenset[str]) -> str:
    """The id of the key that a token says it is signed with. Raises Unauthenticated."""
    if len(token) > _LONGEST_TOKEN or token.count(".") != 2:
        _refuse()
    head = token.partition(".")[0]
    try:
        raw = base64.b64decode(head + "=" * (-len(head) % 4), altchars=b"-_", validate=True)
        header = msgspec.json.decode(raw, type=_Header)
    except _BROKEN:
        _refuse()
    if header.alg not in algorithms or header.crit is not UNSET or header.b64 is not UNSET:
        _refuse()
    return header.kid


def _usable(published: list[Any], algorithms: frozenset[str]) -> dict[str, Key]:
    """Those public keys by their ids with which a pinned algorithm can check a signature."""
    kinds = {KEY_TYPES[name] for name in algorithms}
    keys: dict[str, Key] = {}
    for each in published:
        try:
            known = msgspec.convert(each, _Published)
            if known.kty in kinds and known.fits(algorithms):
                keys.setdefault(known.kid, JWKRegistry.import_key(each))
        except _BROKEN:
            continue  # One key that makes no sense does not spoil the others.
    return keys


@cache
def default_tls_context() -> ssl.SSLContext:
    """Made once: to read all certificates takes longer than to ask a provider for its keys."""
    return httpx.create_ssl_context(trust_env=False)


def client_of(tls: ssl.SSLContext) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        verify=tls,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(LONGEST_FETCH / 2),
        headers=_HEADERS,
    )


async def fetch_json(
    client: httpx.AsyncClient, url: str, kind: type[Document], method: str = "GET", **more: Any
) -> Document:
    """A document of the issuer. Raises Unfit."""
    try:
        async with client.stream(method, url, **more) as response:
            if response.status_code != 200:
                status = response.status_code
                raise IssuerMisconfigured(
                    f"it answers with status {status}", refused=400 <= status < 500
                )
            body = bytearray()
            async for chunk in response.aiter_raw(8192):
                body += chunk
                if len(body) > MOST_READ:
                    raise IssuerMisconfigured("it says more than anybody could want to know")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as wrong:
        raise IssuerMisconfigured(f"no answer ({type(wrong).__name__})") from wrong
    try:
        return msgspec.json.decode(body, type=kind)
    except ValueError:
        raise IssuerMisconfigured("what it says makes no sense") from None


def _refuse() -> NoReturn:
    raise Unauthenticated(REFUSED) from None
