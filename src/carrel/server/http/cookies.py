"""Browser session cookies, CSRF checks, and trusted hosts and origins."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from carrel.core.errors import Forbidden
from carrel.server.http.endpoint import Headers, Request

SESSION_COOKIE: Final = "carrel_session"
CSRF_HEADER: Final = "X-Carrel-Csrf"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods without side effects; they need no CSRF check."""

_CSRF_HEADER_KEY: Final = CSRF_HEADER.lower().encode("ascii")
_CSRF_HEADER_REQUIRED: Final = (
    f"a request by session cookie that changes data must send {CSRF_HEADER}: 1"
)
_UNKNOWN_HOST: Final = (
    "the Host header does not name this server; its names are set by CARREL_PUBLIC_URL and"
    " CARREL_ALLOWED_HOSTS"
)
_FOREIGN_ORIGIN: Final = (
    "the Origin header names another site; trusted ones are set by CARREL_ALLOWED_ORIGINS"
)
_CROSS_ORIGIN: Final = "cross-origin request refused: the origin is not this server's"


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """Public URL of this server, and what derives from it: cookies and origin checks."""

    url: str = ""
    """Public base URL set by the operator; if empty, the Host header is used."""
    hosts: frozenset[str] = frozenset()
    """Names of this server beside loopback names, addresses and the host of `url`; or `*`."""
    origins: frozenset[str] = frozenset()
    """Origins trusted beside loopback ones and this server's; or `*`."""

    def with_session_token(self, headers: Headers, method: str, https: bool) -> Headers:
        """Headers with the session cookie turned into a bearer token.

        Unchanged if another credential is present. Raises Forbidden if an unsafe method lacks the
        CSRF header or comes from another origin.
        """
        if b"cookie" not in headers or b"authorization" in headers or b"x-api-key" in headers:
            return headers
        token = find_cookie(headers, SESSION_COOKIE)
        if not token:
            return headers
        if method not in SAFE_METHODS:
            if headers.get(_CSRF_HEADER_KEY) != b"1":
                raise Forbidden(_CSRF_HEADER_REQUIRED, header=CSRF_HEADER)
            self.require_same_origin(headers, https)
        return {**headers, b"authorization": b"Bearer " + token.encode("latin-1")}

    def require_same_origin(self, headers: Headers, https: bool) -> None:
        """Raise Forbidden if Sec-Fetch-Site or Origin names another origin."""
        if headers.get(b"sec-fetch-site", b"same-origin") != b"same-origin":
            raise Forbidden(_CROSS_ORIGIN)
        origin = headers.get(b"origin")
        if origin is not None and not self._is_same_origin(
            origin.decode("latin-1"), headers, https
        ):
            raise Forbidden(_CROSS_ORIGIN)

    def require_trusted_source(self, headers: Headers, https: bool) -> None:
        """Raise Forbidden for an unknown Host or a foreign Origin.

        Protects endpoints without a cookie from web pages, also from those whose name was made to
        resolve to this server (DNS rebinding). A browser cannot be made to send an address as Host.
        """
        host = _host_name(headers.get(b"host", b"").decode("latin-1"))
        names = {*self.hosts, _host_name(_parse_origin(self.url)[1])} - {""}
        if not (_is_address(host) or _is_loopback_name(host) or host in names or "*" in names):
            raise Forbidden(_UNKNOWN_HOST)
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and not self._is_trusted_origin(origin, headers, https):
            raise Forbidden(_FOREIGN_ORIGIN)

    def _is_trusted_origin(self, origin: str, headers: Headers, https: bool) -> bool:
        if "*" in self.origins or origin in self.origins:
            return True
        name = _host_name(_parse_origin(origin)[1])
        is_loopback = _is_loopback_name(name) or (
            _is_address(name) and ip_address(name).is_loopback
        )
        return is_loopback or self._is_same_origin(origin, headers, https)

    def _is_same_origin(self, origin: str, headers: Headers, https: bool) -> bool:
        """Whether `origin` is this server.

        A TLS proxy may hide https, so an https origin is accepted over http.
        """
        scheme, _, authority = origin.lower().partition("://")
        if authority and (scheme, authority) == _parse_origin(self.url):
            return True
        host = headers.get(b"host", b"").decode("latin-1").lower()
        schemes = {"https"} if https else {"http", "https"}
        return bool(host) and authority == host and scheme in schemes

    def uses_secure_cookies(self, https: bool) -> bool:
        """Whether cookies carry the Secure attribute."""
        return https or self.url.lower().startswith("https://")

    def absolute_url(self, path: str, request: Request) -> str:
        """Absolute URL of a path of this server."""
        return self.base_url(request.header(b"host") or "", request.https) + path

    def base_url(self, host: str, https: bool) -> str:
        """Base URL of this server, for a request with this Host header."""
        return self.url.rstrip("/") or f"{'https' if https else 'http'}://{host}"

    def session_cookie(self, token: str, seconds: int, https: bool) -> str:
        """Set-Cookie value that stores a session token."""
        return set_cookie_header(
            SESSION_COOKIE, token, seconds=seconds, secure=self.uses_secure_cookies(https)
        )

    def expired_session_cookie(self, https: bool) -> str:
        return set_cookie_header(
            SESSION_COOKIE, "", seconds=0, secure=self.uses_secure_cookies(https)
        )


def find_cookie(headers: Headers, name: str) -> str | None:
    """First cookie of that name, or None."""
    header_value = headers.get(b"cookie", b"").decode("latin-1").replace(",", ";")
    for pair in header_value.split(";"):
        cookie_name, _, value = pair.strip().partition("=")
        if cookie_name == name:
            return value
    return None


def set_cookie_header(
    name: str, value: str, *, seconds: int, secure: bool, path: str = "/", same_site: str = "Strict"
) -> str:
    """Set-Cookie value of an HttpOnly cookie."""
    header = f"{name}={value}; HttpOnly; SameSite={same_site}; Path={path}; Max-Age={seconds}"
    return header + "; Secure" if secure else header


def _host_name(authority: str) -> str:
    """Name or address without port and brackets, in lower case; empty if invalid."""
    try:
        parts = urlsplit(f"//{authority}")
        is_authority = parts.netloc == authority and "@" not in authority and parts.port != 0
    except ValueError:  # An invalid address or port.
        return ""
    return (parts.hostname or "").removesuffix(".") if is_authority else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _parse_origin(url: str) -> tuple[str, str]:
    """Scheme and authority of a URL; two empty strings if it is invalid."""
    try:
        parts = urlsplit(url.lower())
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc
