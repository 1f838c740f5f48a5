"""Signing in at a browser by an OpenID Connect issuer: out to it, and back with a code."""

from __future__ import annotations

import hmac
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from carrel.actions.accounts import oidc
from carrel.actions.accounts import sign_in as signins
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


async def begin(world: Ports, flow: CodeFlow, redirect: str, home: str) -> SignInStart:
    """Raises ConnectionError."""
    state, nonce, verifier = (world.clock.token(word) for word in ("state", "nonce", "verifier"))
    address = await flow.address(redirect, state, nonce, verifier)
    errand = SignInState(state, nonce, verifier, home, world.clock.now() + LIFE)
    return SignInStart(address, world.vault.seal(msgspec.json.encode(errand), _CONTEXT))


async def finish(
    world: Ports, flow: CodeFlow, redirect: str, sealed: str, state: str, code: str
) -> SignInResult:
    """A session for who is back with a code: a person who is known as by the issuer's tokens.

    Raises Gone where this browser was not sent, or too long ago; Unauthenticated; ConnectionError.
    """
    errand = _errand(world, sealed)
    if errand is None or not hmac.compare_digest(errand.state.encode(), state.encode()):
        raise Expired("this sign-in is over, or was begun elsewhere")
    if not code:
        raise Unauthenticated(UNKNOWN)
    token = await flow.token(code, redirect, errand.nonce, errand.verifier)
    actor = await oidc.person_of(world, flow.issuer, token)
    return SignInResult(await signins.sign_in_person(world, actor), errand.home)


def _errand(world: Ports, sealed: str) -> SignInState | None:
    try:
        errand = msgspec.json.decode(world.vault.open(sealed, _CONTEXT), type=SignInState)
    except (CorruptContent, ValueError):
        return None
    return errand if world.clock.now() < errand.until else None
