"""Browser sign-in through an OpenID Connect issuer (authorization code flow)."""

from __future__ import annotations

import hmac
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from carrel.actions.accounts import oidc, sign_in
from carrel.actions.accounts.credentials import INVALID_CREDENTIAL
from carrel.actions.accounts.oidc import Issuer
from carrel.core.errors import Expired, Unauthenticated
from carrel.core.identifiers import TimestampMs
from carrel.ports import CorruptContent, Ports

SIGN_IN_TIMEOUT_MS: Final = 600_000
"""How long a browser may take to return from the issuer."""
_CONTEXT: Final = "oidc sign-in"


class CodeFlow(Protocol):
    """Authorization code flow with one issuer."""

    @property
    def name(self) -> str:
        """Display name of the issuer."""

    @property
    def issuer(self) -> Issuer:
        """Verifier of the tokens that the issuer exchanges for codes."""

    async def authorization_url(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Return the issuer's URL for the browser. Raises ConnectionError."""

    async def exchange_code(self, code: str, redirect: str, nonce: str, verifier: str) -> str:
        """Exchange a code for a verified token of this sign-in.

        Raises Unauthenticated without a reason, and ConnectionError.
        """


class SignInState(Struct, frozen=True):
    """State of a pending sign-in, sealed in the browser's cookie."""

    state: str
    nonce: str
    verifier: str
    home: str
    """Path on this site to return to after sign-in."""
    until: TimestampMs


class SignInStart(Struct, frozen=True):
    address: str
    sealed: str


class SignInResult(Struct, frozen=True):
    token: str
    home: str


async def begin(ports: Ports, flow: CodeFlow, redirect: str, home: str) -> SignInStart:
    """Start a sign-in. Raises ConnectionError."""
    state, nonce, verifier = (
        ports.clock.new_token(purpose) for purpose in ("state", "nonce", "verifier")
    )
    address = await flow.authorization_url(redirect, state, nonce, verifier)
    sign_in_state = SignInState(
        state, nonce, verifier, home, ports.clock.now() + SIGN_IN_TIMEOUT_MS
    )
    return SignInStart(address, ports.vault.seal(msgspec.json.encode(sign_in_state), _CONTEXT))


async def finish(
    ports: Ports, flow: CodeFlow, redirect: str, sealed: str, state: str, code: str
) -> SignInResult:
    """Exchange the code for a token and create a browser session for its person.

    Raises Expired if this browser did not start the sign-in or took too long; Unauthenticated;
    ConnectionError.
    """
    sign_in_state = _open_state(ports, sealed)
    if sign_in_state is None or not hmac.compare_digest(
        sign_in_state.state.encode(), state.encode()
    ):
        raise Expired("this sign-in has expired or was started in another browser")
    if not code:
        raise Unauthenticated(INVALID_CREDENTIAL)
    token = await flow.exchange_code(code, redirect, sign_in_state.nonce, sign_in_state.verifier)
    actor = await oidc.authenticate_person(ports, flow.issuer, token)
    return SignInResult(await sign_in.sign_in_person(ports, actor), sign_in_state.home)


def _open_state(ports: Ports, sealed: str) -> SignInState | None:
    try:
        sign_in_state = msgspec.json.decode(ports.vault.open(sealed, _CONTEXT), type=SignInState)
    except (CorruptContent, ValueError):
        return None
    return sign_in_state if ports.clock.now() < sign_in_state.until else None
