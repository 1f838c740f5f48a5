"""Browser session cookies, and CSRF and origin checks for requests that use them."""

from __future__ import annotations

from dataclasses import dataclass
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
_CROSS_ORIGIN: Final = "cross-origin request refused: the origin is not this server's"


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """Public URL of this server, and what derives from it: cookies and origin checks."""

    url: str = ""
    """Public base URL set by the operator; if empty, the Host header is used."""

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
        host = request.header(b"host") or ""
        root = self.url.rstrip("/") or f"{'https' if request.https else 'http'}://{host}"
        return root + path

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


def _parse_origin(url: str) -> tuple[str, str]:
    """Scheme and authority of a URL; two empty strings if it is invalid."""
    try:
        parts = urlsplit(url.lower())
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc
