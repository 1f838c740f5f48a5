"""A browser's session: the cookie it comes with, and how we know that our own page is asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from carrel.core.errors import Forbidden
from carrel.server.http.endpoint import Headers, Request

SESSION: Final = "carrel_session"
CSRF: Final = "X-Carrel-Csrf"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing, so that nobody gains by having a browser send them."""

_CSRF: Final = CSRF.lower().encode("ascii")
_UNMARKED: Final = f"what changes something by a session's cookie must carry {CSRF}: 1"
_STRANGE: Final = "a page of another site may not ask for this: its origin is not this server's"


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """Where browsers find this server."""

    url: str = ""
    """As its operator says it; empty where only the Host of requests tells."""

    def credential(self, headers: Headers, method: str, https: bool) -> Headers:
        """The same with a session's cookie as the token that it is, if nothing else is shown.

        Raises Forbidden where that may not be the doing of our own page.
        """
        if b"cookie" not in headers or b"authorization" in headers or b"x-api-key" in headers:
            return headers
        token = cookie(headers, SESSION)
        if not token:
            return headers
        if method not in SAFE:
            if headers.get(_CSRF) != b"1":
                raise Forbidden(_UNMARKED, header=CSRF)
            self.refuse_strangers(headers, https)
        return {**headers, b"authorization": b"Bearer " + token.encode("latin-1")}

    def refuse_strangers(self, headers: Headers, https: bool) -> None:
        """Raises Forbidden where a browser says that a page of another origin is asking."""
        if headers.get(b"sec-fetch-site", b"same-origin") != b"same-origin":
            raise Forbidden(_STRANGE)
        origin = headers.get(b"origin")
        if origin is not None and not self._is_ours(origin.decode("latin-1"), headers, https):
            raise Forbidden(_STRANGE)

    def _is_ours(self, origin: str, headers: Headers, https: bool) -> bool:
        """Whoever ends TLS for us may not tell, so https is ours too where we only know of http."""
        scheme, _, authority = origin.lower().partition("://")
        if authority and (scheme, authority) == _origin(self.url):
            return True
        host = headers.get(b"host", b"").decode("latin-1").lower()
        schemes = {"https"} if https else {"http", "https"}
        return bool(host) and authority == host and scheme in schemes

    def secure(self, https: bool) -> bool:
        """Whether cookies may go over https alone."""
        return https or self.url.lower().startswith("https://")

    def address(self, path: str, call: Request) -> str:
        """Where a browser finds a path of this server."""
        host = call.header(b"host") or ""
        root = self.url.rstrip("/") or f"{'https' if call.https else 'http'}://{host}"
        return root + path

    def kept(self, token: str, seconds: int, https: bool) -> str:
        """A Set-Cookie under which a browser keeps its session."""
        return set_cookie_header(SESSION, token, seconds=seconds, secure=self.secure(https))

    def forgotten(self, https: bool) -> str:
        return set_cookie_header(SESSION, "", seconds=0, secure=self.secure(https))


def cookie(headers: Headers, name: str) -> str | None:
    """The first cookie of a name. Several lines of them have been joined by commas."""
    given = headers.get(b"cookie", b"").decode("latin-1").replace(",", ";")
    for pair in given.split(";"):
        known, _, value = pair.strip().partition("=")
        if known == name:
            return value
    return None


def set_cookie_header(
    name: str, value: str, *, seconds: int, secure: bool, path: str = "/", same_site: str = "Strict"
) -> str:
    """What a Set-Cookie says; no script sees the cookie."""
    told = f"{name}={value}; HttpOnly; SameSite={same_site}; Path={path}; Max-Age={seconds}"
    return told + "; Secure" if secure else told


def _origin(url: str) -> tuple[str, str]:
    """Nobody's origin where it is no address."""
    try:
        parts = urlsplit(url.lower())
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc
