"""From settings to the issuer whose tokens people may come with."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from carrel.actions.accounts.oidc import Issuer
from carrel.actions.accounts.oidc_sign_in import CodeFlow
from carrel.settings import Settings, SettingsError

if TYPE_CHECKING:
    from carrel.adapters.oidc import IssuerTrust

_HERE = {"localhost", "127.0.0.1", "::1"}


def issuer_of(settings: Settings) -> Issuer | None:
    """The issuer that the settings name, or None where they name none. Raises Unusable."""
    if not settings.oidc_issuer:
        if settings.oidc_audience or settings.oidc_jwks_url or settings.oidc_client_id:
            raise SettingsError(
                "CARREL_OIDC_AUDIENCE, CARREL_OIDC_JWKS_URL and CARREL_OIDC_CLIENT_ID"
                " need CARREL_OIDC_ISSUER"
            )
        return None
    from carrel.adapters.oidc import OidcIssuer  # noqa: PLC0415 - only where it is used

    return OidcIssuer(_trust(settings))


def code_flow_of(settings: Settings) -> CodeFlow | None:
    """How browsers are sent to that issuer, or None where they are not. Raises Unusable."""
    if not settings.oidc_client_id:
        if settings.oidc_client_secret:
            raise SettingsError("CARREL_OIDC_CLIENT_SECRET needs CARREL_OIDC_CLIENT_ID")
        return None
    if not settings.oidc_issuer:
        raise SettingsError("CARREL_OIDC_CLIENT_ID needs CARREL_OIDC_ISSUER")
    from carrel.adapters.oidc import OidcClient, OidcCodeFlow  # noqa: PLC0415 - as above

    client = OidcClient(
        id=settings.oidc_client_id, secret=settings.oidc_client_secret, name=settings.oidc_name
    )
    return OidcCodeFlow(_trust(settings), client)


def _trust(settings: Settings) -> IssuerTrust:
    audiences = _listed(settings.oidc_audience)
    if not audiences:
        raise SettingsError(
            "CARREL_OIDC_ISSUER needs CARREL_OIDC_AUDIENCE: whom its tokens are for"
        )
    _insist_on_secure("CARREL_OIDC_ISSUER", settings.oidc_issuer)
    if settings.oidc_jwks_url:
        _insist_on_secure("CARREL_OIDC_JWKS_URL", settings.oidc_jwks_url)
    from carrel.adapters.oidc import IssuerTrust  # noqa: PLC0415 - as above

    try:
        return IssuerTrust(
            issuer=settings.oidc_issuer,
            audiences=audiences,
            algorithms=_listed(settings.oidc_algorithms),
            jwks_url=settings.oidc_jwks_url,
            skew=settings.oidc_skew_seconds,
        )
    except ValueError as wrong:
        raise SettingsError(f"CARREL_OIDC_ALGORITHMS: {wrong}") from None


def _listed(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _insist_on_secure(name: str, url: str) -> None:
    """Keys that came over an open wire could be anybody's."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise SettingsError(f"{name} must be a URL") from None
    if not host or (parts.scheme != "https" and not (parts.scheme == "http" and host in _HERE)):
        raise SettingsError(f"{name} must be https://… (http:// only on this machine)")
