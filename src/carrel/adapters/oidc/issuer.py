"""Verifies tokens of one OpenID Connect issuer with the keys it publishes.

Keys are fetched only when a token names an unknown key, at most once in 10 seconds. Concurrent
callers share one fetch.
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
"""Returns seconds from an arbitrary start."""

KEY_TYPES: Final = {
    f"{family}{bits}": kind
    for family, kind in (("RS", "RSA"), ("PS", "RSA"), ("ES", "EC"))
    for bits in (256, 384, 512)
}
"""Supported algorithms and their key types.

Only public-key algorithms: never "none", and no HMAC that would take a public key as a secret.
"""

INVALID_CREDENTIAL_MESSAGE: Final = "the credential is missing, unknown, revoked or expired"
RETRY_DELAY_SECONDS: Final = 10.0
FETCH_TIMEOUT_SECONDS: Final = 8.0
MAX_DOCUMENT_BYTES: Final = 256 * 1024
_MAX_TOKEN_BYTES: Final = 16 * 1024
_MIN_MODULUS_LENGTH: Final = 342
"""2048 bits in base64; shorter RSA keys are weak."""
_SUBJECT: Final = re.compile(r"[!-~]{1,255}")
_HEADERS: Final = {"user-agent": f"carrel/{VERSION}", "accept-encoding": "identity"}
_INVALID: Final = (JoseError, ValueError)
"""Errors raised for malformed keys and tokens."""

Document = TypeVar("Document", bound=Struct)


class IssuerUnreachable(ConnectionError):
    """The issuer cannot be reached or used, so tokens cannot be verified."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EHOSTUNREACH, f"issuer unavailable: {reason}")


class IssuerMisconfigured(Exception):
    """A document of the issuer cannot be fetched or used; the message is the reason."""

    def __init__(self, reason: str, *, is_client_error: bool = False) -> None:
        super().__init__(reason)
        self.is_client_error = is_client_error
        """Whether the issuer answered with a 4xx status."""


class IssuerTrust(Struct, frozen=True, kw_only=True):
    """Which issuer, audiences and algorithms are accepted."""

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str] = frozenset({"RS256"})
    jwks_url: str = ""
    """URL of the keys; if empty it is discovered from the issuer."""
    clock_skew_seconds: float = 60
    """Tolerated difference between the issuer's clock and ours."""

    def __post_init__(self) -> None:
        if not self.issuer or not self.audiences or "" in self.audiences:
            raise ValueError("an issuer and an audience are required")
        if not self.algorithms or self.algorithms - KEY_TYPES.keys():
            raise ValueError(f"algorithms must be among {', '.join(KEY_TYPES)}")


class TokenClaims(Struct, frozen=True):
    """Claims of a verified token that Carrel uses."""

    sub: str
    email: str | None
    email_verified: bool


class _TokenHeader(Struct, frozen=True):
    alg: str
    kid: str
    crit: Any = UNSET
    b64: Any = UNSET


class _TokenPayload(Struct, frozen=True):
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


class _ProviderMetadata(Struct, frozen=True):
    issuer: str
    jwks_uri: str


class _PublishedKey(Struct, frozen=True):
    """Properties of a published key that decide whether it is used."""

    kty: str
    kid: str
    use: str = "sig"
    alg: str | None = None
    n: str = ""

    def is_usable(self, algorithms: frozenset[str]) -> bool:
        is_weak = self.kty == "RSA" and len(self.n) < _MIN_MODULUS_LENGTH
        return not is_weak and self.use == "sig" and (self.alg is None or self.alg in algorithms)


class _KeySet(Struct, frozen=True):
    keys: list[Any]


class OidcIssuer:
    """Verifies tokens and caches the issuer's keys. Keeps no connection open."""

    def __init__(
        self,
        trust: IssuerTrust,
        *,
        wall_clock: Timer = time.time,
        monotonic: Timer = time.monotonic,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._trust = trust
        self._wall_clock = wall_clock
        self._monotonic = monotonic
        self._tls = tls or default_tls_context()
        self._registry = jws.JWSRegistry(
            algorithms=sorted(trust.algorithms), strict_check_header=False
        )
        self._keys: Mapping[str, Key] = {}
        self._fetched_at: float | None = None
        self._failure: str | None = None
        self._fetching: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._trust.issuer

    async def claims(self, token: str) -> TokenClaims:
        """Verify a token and return its claims.

        Raises Unauthenticated without a reason, or IssuerUnreachable.
        """
        kid = _key_id(token, self._trust.algorithms)
        if kid not in self._keys:
            await self._refresh()
        key = self._keys.get(kid)
        if key is None and self._failure is not None:
            raise IssuerUnreachable(self._failure)
        if key is None:
            _refuse()
        try:
            signed = jws.deserialize_compact(token, key, registry=self._registry)
            payload = msgspec.json.decode(signed.payload, type=_TokenPayload)
        except _INVALID:
            _refuse()
        if not is_acceptable(payload, self._trust, self._wall_clock()):
            _refuse()
        return TokenClaims(payload.sub, payload.email, payload.email_verified in (True, "true"))

    async def _refresh(self) -> None:
        """Start a fetch if the last is old enough, and wait for the one in flight."""
        now = self._monotonic()
        if self._fetching is None and (
            self._fetched_at is None or now - self._fetched_at >= RETRY_DELAY_SECONDS
        ):
            self._fetched_at = now
            self._fetching = asyncio.create_task(self._fetch())
        if self._fetching is not None:
            # Cancelling one caller must not cancel the fetch that others await.
            await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        """Replace all keys by those published now; keep the old ones on failure."""
        self._failure = "the request was interrupted"
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_SECONDS), new_http_client(self._tls) as client:
                url = self._trust.jwks_url or await self._discover(client)
                published = await fetch_json(client, url, _KeySet)
            self._keys = _usable_keys(published.keys, self._trust.algorithms)
            self._failure = None
        except IssuerMisconfigured as problem:
            self._failure = str(problem)
        except TimeoutError:
            self._failure = "no response in time"
        finally:
            self._fetching = None

    async def _discover(self, client: httpx.AsyncClient) -> str:
        issuer = self._trust.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        metadata = await fetch_json(client, url, _ProviderMetadata)
        if metadata.issuer != issuer:
            raise IssuerMisconfigured("the configuration names another issuer")
        if issuer.startswith("https://") and not metadata.jwks_uri.startswith("https://"):
            raise IssuerMisconfigured("the key URL is not secure")
        return metadata.jwks_uri


def is_acceptable(payload: _TokenPayload, trust: IssuerTrust, now: float) -> bool:
    """Whether a token with a valid signature is meant for this server and valid now."""
    return (
        payload.iss == trust.issuer
        and _SUBJECT.fullmatch(payload.sub) is not None
        and payload.token_use in (UNSET, "id", "access")
        and _is_meant_for(payload, trust.audiences)
        and now - trust.clock_skew_seconds < payload.exp
        and max(payload.iat, payload.nbf or 0) <= now + trust.clock_skew_seconds
    )


def _is_meant_for(payload: _TokenPayload, audiences: frozenset[str]) -> bool:
    if payload.aud is not UNSET:
        token_audiences = [payload.aud] if isinstance(payload.aud, str) else payload.aud
        return not audiences.isdisjoint(token_audiences)
    # Cognito access tokens have no audience claim, only client_id.
    return payload.token_use == "access" and payload.client_id in audiences


def _key_id(token: str, algorithms: frozenset[str]) -> str:
    """Return the key id from the token's header. Raises Unauthenticated."""
    if len(token) > _MAX_TOKEN_BYTES or token.count(".") != 2:
        _refuse()
    head = token.partition(".")[0]
    try:
        raw = base64.b64decode(head + "=" * (-len(head) % 4), altchars=b"-_", validate=True)
        header = msgspec.json.decode(raw, type=_TokenHeader)
    except _INVALID:
        _refuse()
    if header.alg not in algorithms or header.crit is not UNSET or header.b64 is not UNSET:
        _refuse()
    return header.kid


def _usable_keys(published: list[Any], algorithms: frozenset[str]) -> dict[str, Key]:
    """Return the public keys usable with an accepted algorithm, by key id."""
    kinds = {KEY_TYPES[name] for name in algorithms}
    keys: dict[str, Key] = {}
    for raw_key in published:
        try:
            key = msgspec.convert(raw_key, _PublishedKey)
            if key.kty in kinds and key.is_usable(algorithms):
                keys.setdefault(key.kid, JWKRegistry.import_key(raw_key))
        except _INVALID:
            continue  # A malformed key does not disable the others.
    return keys


@cache
def default_tls_context() -> ssl.SSLContext:
    """Create the TLS context once: loading all certificates is slow."""
    return httpx.create_ssl_context(trust_env=False)


def new_http_client(tls: ssl.SSLContext) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        verify=tls,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(FETCH_TIMEOUT_SECONDS / 2),
        headers=_HEADERS,
    )


async def fetch_json(
    client: httpx.AsyncClient,
    url: str,
    document_type: type[Document],
    method: str = "GET",
    **options: Any,
) -> Document:
    """Fetch and decode a document of the issuer. Raises IssuerMisconfigured."""
    try:
        async with client.stream(method, url, **options) as response:
            if response.status_code != 200:
                status = response.status_code
                raise IssuerMisconfigured(
                    f"response status {status}", is_client_error=400 <= status < 500
                )
            body = bytearray()
            async for chunk in response.aiter_raw(8192):
                body += chunk
                if len(body) > MAX_DOCUMENT_BYTES:
                    raise IssuerMisconfigured("response is too large")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise IssuerMisconfigured(f"no response ({type(error).__name__})") from error
    try:
        return msgspec.json.decode(body, type=document_type)
    except ValueError:
        raise IssuerMisconfigured("invalid response") from None


def _refuse() -> NoReturn:
    raise Unauthenticated(INVALID_CREDENTIAL_MESSAGE) from None
