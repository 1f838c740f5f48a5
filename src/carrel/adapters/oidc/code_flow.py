"""OpenID Connect authorization code flow with PKCE."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
import time
from typing import Final
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec
from msgspec import Struct

from carrel.adapters.oidc.issuer import (
    FETCH_TIMEOUT_SECONDS,
    INVALID_CREDENTIAL_MESSAGE,
    RETRY_DELAY_SECONDS,
    IssuerMisconfigured,
    IssuerTrust,
    IssuerUnreachable,
    OidcIssuer,
    Timer,
    default_tls_context,
    fetch_json,
    new_http_client,
)
from carrel.core.errors import Unauthenticated

_SCOPES: Final = "openid email"
_ENDPOINTS_TTL_SECONDS: Final = 3600.0
"""How long the issuer's discovered endpoints are cached."""
_BASIC: Final = "client_secret_basic"


class OidcClient(Struct, frozen=True, kw_only=True):
    """This server's client registration at the issuer."""

    id: str
    secret: str = ""
    """Empty for a public client, which relies on PKCE alone."""
    name: str = ""
    """Display name of the issuer; its host if empty."""


class _Endpoints(Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    token_endpoint_auth_methods_supported: list[str] | None = None


class _TokenResponse(Struct, frozen=True):
    id_token: str


class _IdTokenClaims(Struct, frozen=True):
    """Claims of an ID token that bind it to a client and a sign-in."""

    aud: str | list[str]
    nonce: str = ""
    azp: str | None = None
    token_use: str = "id"


class OidcCodeFlow:
    """Starts sign-ins and exchanges codes. Keeps no connection open."""

    def __init__(
        self,
        trust: IssuerTrust,
        client: OidcClient,
        *,
        wall_clock: Timer = time.time,
        monotonic: Timer = time.monotonic,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._trust = msgspec.structs.replace(trust, audiences=frozenset({client.id}))
        self._client = client
        self._monotonic = monotonic
        self._tls = tls or default_tls_context()
        self.issuer = OidcIssuer(
            self._trust, wall_clock=wall_clock, monotonic=monotonic, tls=self._tls
        )
        self._discovery: tuple[_Endpoints | IssuerMisconfigured, float] | None = None
        self._discovery_lock = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._client.name or urlsplit(self._trust.issuer).hostname or self._trust.issuer

    async def authorization_url(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Return the URL to send the browser to. Raises IssuerUnreachable."""
        endpoints = await self._endpoints()
        query = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": redirect,
            "scope": _SCOPES,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        separator = "&" if urlsplit(endpoints.authorization_endpoint).query else "?"
        return f"{endpoints.authorization_endpoint}{separator}{urlencode(query)}"

    async def exchange_code(self, code: str, redirect: str, nonce: str, verifier: str) -> str:
        """Exchange a code for a verified ID token of this sign-in.

        Raises Unauthenticated without a reason, or IssuerUnreachable.
        """
        token = await self._request_token(code, redirect, verifier)
        await self.issuer.claims(token)
        if not _is_meant_for(token, self._client.id, nonce):
            raise Unauthenticated(INVALID_CREDENTIAL_MESSAGE)
        return token

    async def _request_token(self, code: str, redirect: str, verifier: str) -> str:
        endpoints = await self._endpoints()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": verifier,
            "client_id": self._client.id,
        }
        headers: dict[str, str] = {"accept": "application/json"}
        if self._client.secret:
            if _BASIC in (endpoints.token_endpoint_auth_methods_supported or [_BASIC]):
                headers["authorization"] = _basic_authorization(self._client)
            else:
                form["client_secret"] = self._client.secret
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_SECONDS), new_http_client(self._tls) as client:
                url = endpoints.token_endpoint
                response = await fetch_json(
                    client, url, _TokenResponse, "POST", data=form, headers=headers
                )
        except TimeoutError:
            raise IssuerUnreachable("no response in time") from None
        except IssuerMisconfigured as problem:
            if problem.is_client_error:
                raise Unauthenticated(INVALID_CREDENTIAL_MESSAGE) from None
            raise IssuerUnreachable(str(problem)) from None
        return response.id_token

    async def _endpoints(self) -> _Endpoints:
        """Return the endpoints, cached for an hour; a failure is cached for 10 seconds."""
        async with self._discovery_lock:
            now = self._monotonic()
            if self._discovery is None or now - self._discovery[1] >= _cache_seconds(
                self._discovery[0]
            ):
                self._discovery = await self._discover(), now
        discovery = self._discovery[0]
        if isinstance(discovery, IssuerMisconfigured):
            raise IssuerUnreachable(str(discovery))
        return discovery

    async def _discover(self) -> _Endpoints | IssuerMisconfigured:
        issuer = self._trust.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_SECONDS), new_http_client(self._tls) as client:
                endpoints = await fetch_json(client, url, _Endpoints)
        except TimeoutError:
            return IssuerMisconfigured("no response in time")
        except IssuerMisconfigured as problem:
            return problem
        if endpoints.issuer != issuer:
            return IssuerMisconfigured("the configuration names another issuer")
        urls = (endpoints.authorization_endpoint, endpoints.token_endpoint)
        if not all(_is_safe_url(endpoint_url, issuer) for endpoint_url in urls):
            return IssuerMisconfigured("an endpoint URL is not secure")
        return endpoints


def _cache_seconds(discovery: _Endpoints | IssuerMisconfigured) -> float:
    return (
        RETRY_DELAY_SECONDS
        if isinstance(discovery, IssuerMisconfigured)
        else _ENDPOINTS_TTL_SECONDS
    )


def _is_safe_url(url: str, issuer: str) -> bool:
    """Whether the URL is fit for a Location header and as secure as the issuer's."""
    schemes = ("https://",) if issuer.startswith("https://") else ("https://", "http://")
    is_plain = url.isascii() and url.isprintable() and " " not in url
    return is_plain and "#" not in url and url.startswith(schemes)


def _is_meant_for(token: str, client: str, nonce: str) -> bool:
    """Check audience and nonce of a token whose signature is already verified."""
    body = token.split(".")[1]
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        claims = msgspec.json.decode(raw, type=_IdTokenClaims)
    except ValueError:
        return False
    is_sole_audience = claims.aud in (client, [client])
    return (
        claims.nonce == nonce
        and claims.token_use == "id"
        and (is_sole_audience or claims.azp == client)
    )


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _basic_authorization(client: OidcClient) -> str:
    credentials = f"{quote_plus(client.id)}:{quote_plus(client.secret)}"
    return f"Basic {base64.b64encode(credentials.encode()).decode('ascii')}"
