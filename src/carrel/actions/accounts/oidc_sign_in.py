"""Signing in at a browser by an OpenID Connect issuer: out to it, and back with a code."""

from __future__ import annotations

import hmac
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from carrel.actions.accounts import oidc, sign_in
from carrel.actions.accounts.credentials import UNKNOWN
from carrel.actions.accounts.oidc import Issuer
from carrel.core.errors import Expired, Unauthenticated
from carrel.core.identifiers import TimestampMs
from carrel.ports import CorruptContent, Ports

LIFE: Final = 600_000
"""For which somebody may take to sign in there."""
_CONTEXT: Final = "oidc sign-in"


class CodeFlow(Protocol):
    """One issuer that people may be sent to."""

    @property
    def name(self) -> str:
        """What people know it as."""

    @property
    def issuer(self) -> Issuer:
        """Knows the tokens that it gives for codes."""

    async def address(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Where the browser goes. Raises ConnectionError."""

    async def token(self, code: str, redirect: str, nonce: str, verifier: str) -> str:
        """The token for a code, if it is good and for this sign-in.

        Raises Unauthenticated, saying nothing of why, and ConnectionError.
        """


class SignInState(Struct, frozen=True):
    """What a browser keeps, sealed, until it is back."""

    state: str
    nonce: str
    verifier: str
    home: str
    """The path of this site to which it goes in the end."""
    until: TimestampMs


class SignInStart(Struct, frozen=True):
    address: str
    sealed: str


class SignInResult(Struct, frozen=True):
    token: str
    home: str


async def begin(ports: Ports, flow: CodeFlow, redirect: str, home: str) -> SignInStart:
    """Raises ConnectionError."""
    state, nonce, verifier = (
        ports.clock.new_token(word) for word in ("state", "nonce", "verifier")
    )
    address = await flow.address(redirect, state, nonce, verifier)
    errand = SignInState(state, nonce, verifier, home, ports.clock.now() + LIFE)
    return SignInStart(address, ports.vault.seal(msgspec.json.encode(errand), _CONTEXT))


async def finish(
    ports: Ports, flow: CodeFlow, redirect: str, sealed: str, state: str, code: str
) -> SignInResult:
    """A session for who is back with a code: a person who is known as by the issuer's tokens.

    Raises Gone where this browser was not sent, or too long ago; Unauthenticated; ConnectionError.
    """
    errand = _errand(ports, sealed)
    if errand is None or not hmac.compare_digest(errand.state.encode(), state.encode()):
        raise Expired("this sign-in is over, or was begun elsewhere")
    if not code:
        raise Unauthenticated(UNKNOWN)
    token = await flow.token(code, redirect, errand.nonce, errand.verifier)
    actor = await oidc.person_of(ports, flow.issuer, token)
    return SignInResult(await sign_in.sign_in_person(ports, actor), errand.home)


def _errand(ports: Ports, sealed: str) -> SignInState | None:
    try:
        errand = msgspec.json.decode(ports.vault.open(sealed, _CONTEXT), type=SignInState)
    except (CorruptContent, ValueError):
        return None
    return errand if ports.clock.now() < errand.until else None
