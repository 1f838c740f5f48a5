"""The code flow of OpenID Connect: where a browser is sent to, and the token for what it brings."""

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
    LONGEST_FETCH,
    PAUSE,
    REFUSED,
    IssuerMisconfigured,
    IssuerTrust,
    IssuerUnreachable,
    OidcIssuer,
    Timer,
    client_of,
    default_tls_context,
    fetch_json,
)
from carrel.core.errors import Unauthenticated

_SCOPES: Final = "openid email"
_KNOWN_FOR: Final = 3600.0
"""Seconds for which the issuer is not asked again where its endpoints are."""
_BASIC: Final = "client_secret_basic"


class OidcClient(Struct, frozen=True, kw_only=True):
    """What the issuer knows this server as."""

    id: str
    secret: str = ""
    """Empty for one that has none: PKCE alone shows then who had begun."""
    name: str = ""
    """What people know the issuer as; its host if empty."""


class _Endpoints(Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    token_endpoint_auth_methods_supported: list[str] | None = None


class _TokenResponse(Struct, frozen=True):
    id_token: str


class _IdTokenClaims(Struct, frozen=True):
    """What an ID token says of the sign-in that it is for."""

    aud: str | list[str]
    nonce: str = ""
    azp: str | None = None
    token_use: str = "id"


class OidcCodeFlow:
    """Nothing stays open between two questions, so it needs no closing."""

    def __init__(
        self,
        trust: IssuerTrust,
        client: OidcClient,
        *,
        wall: Timer = time.time,
        steady: Timer = time.monotonic,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._trust = msgspec.structs.replace(trust, audiences=frozenset({client.id}))
        self._client = client
        self._steady = steady
        self._tls = tls or default_tls_context()
        self.issuer = OidcIssuer(self._trust, wall=wall, steady=steady, tls=self._tls)
        self._found: tuple[_Endpoints | IssuerMisconfigured, float] | None = None
        self._asking = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._client.name or urlsplit(self._trust.issuer).hostname or self._trust.issuer

    async def address(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Where the browser goes, to come back to ``redirect`` with a code. Raises Unreachable."""
        endpoints = await self._endpoints()
        asked = {
            "response_type": "code",
            "client_id": self._client.id,
            "redirect_uri": redirect,
            "scope": _SCOPES,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        joint = "&" if urlsplit(endpoints.authorization_endpoint).query else "?"
        return f"{endpoints.authorization_endpoint}{joint}{urlencode(asked)}"

    async def token(self, code: str, redirect: str, nonce: str, verifier: str) -> str:
        """The ID token for a code, which is good and for this very sign-in.

        Raises Unauthenticated, saying nothing of why, or Unreachable.
        """
        token = await self._granted(code, redirect, verifier)
        await self.issuer.claims(token)
        if not _is_meant_for(token, self._client.id, nonce):
            raise Unauthenticated(REFUSED)
        return token

    async def _granted(self, code: str, redirect: str, verifier: str) -> str:
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
                headers["authorization"] = _basic(self._client)
            else:
                form["client_secret"] = self._client.secret
        try:
            async with asyncio.timeout(LONGEST_FETCH), client_of(self._tls) as client:
                url = endpoints.token_endpoint
                said = await fetch_json(
                    client, url, _TokenResponse, "POST", data=form, headers=headers
                )
        except TimeoutError:
            raise IssuerUnreachable("it does not answer in time") from None
        except IssuerMisconfigured as problem:
            if problem.refused:
                raise Unauthenticated(REFUSED) from None
            raise IssuerUnreachable(str(problem)) from None
        return said.id_token

    async def _endpoints(self) -> _Endpoints:
        """Asked for once an hour; where they cannot be had, not again for some seconds."""
        async with self._asking:
            now = self._steady()
            if self._found is None or now - self._found[1] >= _life(self._found[0]):
                self._found = await self._discovered(), now
        found = self._found[0]
        if isinstance(found, IssuerMisconfigured):
            raise IssuerUnreachable(str(found))
        return found

    async def _discovered(self) -> _Endpoints | IssuerMisconfigured:
        issuer = self._trust.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            async with asyncio.timeout(LONGEST_FETCH), client_of(self._tls) as client:
                found = await fetch_json(client, url, _Endpoints)
        except TimeoutError:
            return IssuerMisconfigured("it does not answer in time")
        except IssuerMisconfigured as problem:
            return problem
        if found.issuer != issuer:
            return IssuerMisconfigured("its configuration is that of another issuer")
        addresses = (found.authorization_endpoint, found.token_endpoint)
        if not all(_is_sound(address, issuer) for address in addresses):
            return IssuerMisconfigured("one of its endpoints is at an address that is not secure")
        return found


def _life(found: _Endpoints | IssuerMisconfigured) -> float:
    return PAUSE if isinstance(found, IssuerMisconfigured) else _KNOWN_FOR


def _is_sound(address: str, issuer: str) -> bool:
    """Fit for a Location and a request: as secure as the issuer itself is."""
    schemes = ("https://",) if issuer.startswith("https://") else ("https://", "http://")
    plain = address.isascii() and address.isprintable() and " " not in address
    return plain and "#" not in address and address.startswith(schemes)


def _is_meant_for(token: str, client: str, nonce: str) -> bool:
    """Its signature has been checked already."""
    body = token.split(".")[1]
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        meant = msgspec.json.decode(raw, type=_IdTokenClaims)
    except ValueError:
        return False
    alone = meant.aud in (client, [client])
    return meant.nonce == nonce and meant.token_use == "id" and (alone or meant.azp == client)


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _basic(client: OidcClient) -> str:
    both = f"{quote_plus(client.id)}:{quote_plus(client.secret)}"
    return f"Basic {base64.b64encode(both.encode()).decode('ascii')}"
