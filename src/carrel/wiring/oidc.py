"""Builds the OpenID Connect issuer and code flow from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from carrel.actions.accounts.oidc import Issuer
from carrel.actions.accounts.oidc_sign_in import CodeFlow
from carrel.settings import Settings, SettingsError

if TYPE_CHECKING:
    from carrel.adapters.oidc import IssuerTrust

_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


def create_issuer(settings: Settings) -> Issuer | None:
    """Return the configured issuer, or None. Raises SettingsError."""
    if not settings.oidc_issuer:
        if settings.oidc_audience or settings.oidc_jwks_url or settings.oidc_client_id:
            raise SettingsError(
                "CARREL_OIDC_AUDIENCE, CARREL_OIDC_JWKS_URL and CARREL_OIDC_CLIENT_ID"
                " need CARREL_OIDC_ISSUER"
            )
        return None
    from carrel.adapters.oidc import OidcIssuer  # noqa: PLC0415 - slow import

    return OidcIssuer(_issuer_trust(settings))


def create_code_flow(settings: Settings) -> CodeFlow | None:
    """Return the configured authorization code flow, or None. Raises SettingsError."""
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
    return OidcCodeFlow(_issuer_trust(settings), client)


def _issuer_trust(settings: Settings) -> IssuerTrust:
    audiences = _split_list(settings.oidc_audience)
    if not audiences:
        raise SettingsError("CARREL_OIDC_ISSUER needs CARREL_OIDC_AUDIENCE")
    _require_secure_url("CARREL_OIDC_ISSUER", settings.oidc_issuer)
    if settings.oidc_jwks_url:
        _require_secure_url("CARREL_OIDC_JWKS_URL", settings.oidc_jwks_url)
    from carrel.adapters.oidc import IssuerTrust  # noqa: PLC0415 - as above

    try:
        return IssuerTrust(
            issuer=settings.oidc_issuer,
            audiences=audiences,
            algorithms=_split_list(settings.oidc_algorithms),
            jwks_url=settings.oidc_jwks_url,
            clock_skew_seconds=settings.oidc_skew_seconds,
        )
    except ValueError as error:
        raise SettingsError(f"CARREL_OIDC_ALGORITHMS: {error}") from None


def _split_list(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _require_secure_url(name: str, url: str) -> None:
    """Require https, except on this machine: keys fetched over http could be forged."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise SettingsError(f"{name} must be a URL") from None
    if not host or (
        parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL_HOSTS)
    ):
        raise SettingsError(f"{name} must be https://… (http:// only on this machine)")
