"""REST endpoints for browser sign-in through an OpenID Connect provider."""

from __future__ import annotations

import re
from typing import Annotated, Final

from msgspec import Meta, field

from carrel.actions.accounts import oidc_sign_in, sign_in
from carrel.actions.accounts.oidc_sign_in import CodeFlow
from carrel.core.errors import Busy, Expired, Unauthenticated, ValidationError
from carrel.server.http.cookies import SiteSettings, find_cookie, set_cookie_header
from carrel.server.http.endpoint import Endpoint, Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import HeaderPairs, Response, encode_headers

_TAG: Final = "Signing in"
START_PATH: Final = "/v1/session/oidc"
_CALLBACK_PATH: Final = f"{START_PATH}/callback"
_STATE_COOKIE: Final = "carrel_oidc"
_STATE_COOKIE_SECONDS: Final = oidc_sign_in.SIGN_IN_TIMEOUT_MS // 1000
_RETURN_PATH: Final = "^/(?:[!-.0-\\[\\]-~][!-\\[\\]-~]*)?$"
"""Path of this site; excludes what a browser would resolve to another host."""
_NO_STORE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_ERROR_CODES: Final[dict[type[Exception], str]] = {
    Expired: "expired",
    Unauthenticated: "unknown",
    Busy: "busy",
    ConnectionError: "unavailable",
}


class OidcProviderModel(ResponseModel, frozen=True):
    """A configured identity provider."""

    name: Annotated[str, Meta(description="Display name.")]
    start: Annotated[str, Meta(description="Path at which a browser starts.")]


class SignInMethodsModel(ResponseModel, frozen=True):
    """Available sign-in methods."""

    link: bool
    token: bool
    oidc: OidcProviderModel | None


class OidcStartQuery(RequestModel, frozen=True):
    home: Annotated[
        str,
        Meta(pattern=_RETURN_PATH, max_length=1000, description="Path of this site to return to."),
    ] = field(name="return", default="/")


class OidcCallbackQuery(RequestModel, frozen=True):
    """Parameters sent by the provider; unknown ones are ignored."""

    code: str = ""
    state: str = ""
    error: str = ""
    iss: str = ""


def endpoints(site: SiteSettings, flow: CodeFlow | None) -> tuple[Endpoint, ...]:
    return (_methods_endpoint(flow), _start_endpoint(site, flow), _callback_endpoint(site, flow))


def _methods_endpoint(flow: CodeFlow | None) -> Endpoint:
    @endpoint("GET", "/v1/session/ways", public=True, responses={200: SignInMethodsModel}, tag=_TAG)
    async def methods(request: Request) -> Response:
        """List the available sign-in methods."""
        provider = None if flow is None else OidcProviderModel(name=flow.name, start=START_PATH)
        return Response.json(
            SignInMethodsModel(link=True, token=True, oidc=provider), headers=_NO_STORE
        )

    return methods


def _start_endpoint(site: SiteSettings, flow: CodeFlow | None) -> Endpoint:
    @endpoint(
        "GET",
        START_PATH,
        id="browser_oidc_start",
        public=True,
        query=OidcStartQuery,
        responses={302: None},
        response_headers=("Location", "Set-Cookie"),
        tag=_TAG,
    )
    async def start(request: Request[None, OidcStartQuery]) -> Response:
        """Redirect the browser to the identity provider.

        Redirects to `/sign-in?error=…` on failure.
        """
        if not re.fullmatch(_RETURN_PATH, request.query.home):
            raise ValidationError("return must be a path of this site")
        if flow is None:
            return _redirect_to_error("not_offered", [])
        try:
            flow_start = await oidc_sign_in.begin(
                request.ports, flow, site.absolute_url(_CALLBACK_PATH, request), request.query.home
            )
        except ConnectionError:
            return _redirect_to_error("unavailable", [])
        return _redirect(
            302,
            flow_start.address,
            [_state_cookie(site, request, flow_start.sealed, _STATE_COOKIE_SECONDS)],
        )

    return start


def _callback_endpoint(site: SiteSettings, flow: CodeFlow | None) -> Endpoint:
    @endpoint(
        "GET",
        _CALLBACK_PATH,
        id="browser_oidc_callback",
        public=True,
        query=OidcCallbackQuery,
        allow_unknown_query=True,
        responses={303: None},
        response_headers=("Location", "Set-Cookie"),
        tag=_TAG,
    )
    async def callback(request: Request[None, OidcCallbackQuery]) -> Response:
        """Complete the sign-in and create the browser session.

        Redirects to `/sign-in?error=…` on failure.
        """
        query, expired_cookie = request.query, _state_cookie(site, request, "", 0)
        if flow is None:
            return _redirect_to_error("not_offered", [expired_cookie])
        if query.error or query.iss not in {"", flow.issuer.name}:
            return _redirect_to_error("denied", [expired_cookie])
        sealed = find_cookie(request.headers, _STATE_COOKIE) or ""
        try:
            result = await oidc_sign_in.finish(
                request.ports,
                flow,
                site.absolute_url(_CALLBACK_PATH, request),
                sealed,
                query.state,
                query.code,
            )
        except (Expired, Unauthenticated, Busy, ConnectionError) as error:
            return _redirect_to_error(_error_code(error), [expired_cookie])
        session_cookie = site.session_cookie(
            result.token, sign_in.KEY_LIFETIME_MS // 1000, request.https
        )
        return _redirect(303, result.home, [session_cookie, expired_cookie])

    return callback


def _state_cookie(site: SiteSettings, request: Request, sealed: str, seconds: int) -> str:
    """Set-Cookie value of the sealed sign-in state.

    SameSite=Lax, since the provider's site redirects here.
    """
    secure = site.uses_secure_cookies(request.https)
    return set_cookie_header(
        _STATE_COOKIE, sealed, seconds=seconds, secure=secure, path=START_PATH, same_site="Lax"
    )


def _error_code(error: Exception) -> str:
    return next(code for error_type, code in _ERROR_CODES.items() if isinstance(error, error_type))


def _redirect_to_error(reason: str, cookies: list[str]) -> Response:
    return _redirect(303 if cookies else 302, f"/sign-in?error={reason}", cookies)


def _redirect(status: int, location: str, cookies: list[str]) -> Response:
    headers: HeaderPairs = encode_headers({"Location": location, **_NO_STORE})
    headers += [(b"set-cookie", cookie_header.encode("latin-1")) for cookie_header in cookies]
    return Response(status, b"", headers)
