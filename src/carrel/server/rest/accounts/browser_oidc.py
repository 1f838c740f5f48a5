"""Signing in at a browser by an identity provider, over HTTP: out to it, and back."""

from __future__ import annotations

import re
from typing import Annotated, Final

from msgspec import Meta, field

from carrel.actions.accounts import oidc_sign_in, sign_in
from carrel.actions.accounts.oidc_sign_in import CodeFlow
from carrel.core.errors import Busy, Expired, Unauthenticated, ValidationError
from carrel.server.http.cookies import SiteSettings, cookie, set_cookie_header
from carrel.server.http.endpoint import Endpoint, Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Pairs, Response, encode_headers

_TAG: Final = "Signing in"
START: Final = "/v1/session/oidc"
_BACK: Final = f"{START}/callback"
_ERRAND: Final = "carrel_oidc"
_SECONDS: Final = oidc_sign_in.LIFE // 1000
_HOME: Final = "^/(?:[!-.0-\\[\\]-~][!-\\[\\]-~]*)?$"
"""A path of this site: one that no browser takes for another host."""
_FRESH: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_WHY: Final[dict[type[Exception], str]] = {
    Expired: "expired",
    Unauthenticated: "unknown",
    Busy: "busy",
    ConnectionError: "unavailable",
}


class Provider(ResponseModel, frozen=True):
    name: Annotated[str, Meta(description="What people know it as.")]
    start: Annotated[str, Meta(description="Where a browser begins.")]


class SignInMethods(ResponseModel, frozen=True):
    link: bool
    token: bool
    oidc: Provider | None


class StartQuery(RequestModel, frozen=True):
    home: Annotated[
        str, Meta(pattern=_HOME, max_length=1000, description="A path of this site to end at.")
    ] = field(name="return", default="/")


class CallbackQuery(RequestModel, frozen=True):
    """What the provider says; what else it says is left aside."""

    code: str = ""
    state: str = ""
    error: str = ""
    iss: str = ""


def endpoints(site: SiteSettings, flow: CodeFlow | None) -> tuple[Endpoint, ...]:
    return (_ways(flow), _starting(site, flow), _returning(site, flow))


def _ways(flow: CodeFlow | None) -> Endpoint:
    @endpoint("GET", "/v1/session/ways", public=True, responses={200: SignInMethods}, tag=_TAG)
    async def ways(call: Request) -> Response:
        """How people can sign in here."""
        provider = None if flow is None else Provider(name=flow.name, start=START)
        return Response.json(SignInMethods(link=True, token=True, oidc=provider), headers=_FRESH)

    return ways


def _starting(site: SiteSettings, flow: CodeFlow | None) -> Endpoint:
    @endpoint(
        "GET",
        START,
        id="browser_oidc_start",
        public=True,
        query=StartQuery,
        responses={302: None},
        response_headers=("Location", "Set-Cookie"),
        tag=_TAG,
    )
    async def start(call: Request[None, StartQuery]) -> Response:
        """Send a browser to the identity provider.

        Where that cannot be, to `/sign-in?error=…`.
        """
        if not re.fullmatch(_HOME, call.query.home):
            raise ValidationError("return is a path of this site")
        if flow is None:
            return _failed("not_offered", [])
        try:
            begun = await oidc_sign_in.begin(
                call.ports, flow, site.address(_BACK, call), call.query.home
            )
        except ConnectionError:
            return _failed("unavailable", [])
        return _sent(302, begun.address, [_errand(site, call, begun.sealed, _SECONDS)])

    return start


def _returning(site: SiteSettings, flow: CodeFlow | None) -> Endpoint:
    @endpoint(
        "GET",
        _BACK,
        id="browser_oidc_back",
        public=True,
        query=CallbackQuery,
        allow_unknown_query=True,
        responses={303: None},
        response_headers=("Location", "Set-Cookie"),
        tag=_TAG,
    )
    async def back(call: Request[None, CallbackQuery]) -> Response:
        """Take a browser back from the identity provider, and begin its session.

        Where there is none, it goes to `/sign-in?error=…`.
        """
        query, over = call.query, _errand(site, call, "", 0)
        if flow is None:
            return _failed("not_offered", [over])
        if query.error or query.iss not in {"", flow.issuer.name}:
            return _failed("denied", [over])
        sealed = cookie(call.headers, _ERRAND) or ""
        try:
            done = await oidc_sign_in.finish(
                call.ports, flow, site.address(_BACK, call), sealed, query.state, query.code
            )
        except (Expired, Unauthenticated, Busy, ConnectionError) as problem:
            return _failed(_why(problem), [over])
        kept = site.kept(done.token, sign_in.KEY_LIFE // 1000, call.https)
        return _sent(303, done.home, [kept, over])

    return back


def _errand(site: SiteSettings, call: Request, sealed: str, seconds: int) -> str:
    """What the browser has to show when it is back; other sites lead there, so it is lax."""
    secure = site.secure(call.https)
    return set_cookie_header(
        _ERRAND, sealed, seconds=seconds, secure=secure, path=START, same_site="Lax"
    )


def _why(problem: Exception) -> str:
    return next(word for kind, word in _WHY.items() if isinstance(problem, kind))


def _failed(reason: str, cookies: list[str]) -> Response:
    return _sent(303 if cookies else 302, f"/sign-in?error={reason}", cookies)


def _sent(status: int, where: str, cookies: list[str]) -> Response:
    headers: Pairs = encode_headers({"Location": where, **_FRESH})
    headers += [(b"set-cookie", one.encode("latin-1")) for one in cookies]
    return Response(status, b"", headers)
