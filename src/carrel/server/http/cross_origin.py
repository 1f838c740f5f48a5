"""Cross-origin resource sharing: lets web pages of configured origins call the API.

Pages send a token in a header. Cookies are never shared: no response allows credentials.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from carrel.server.http.endpoint import Headers
from carrel.server.http.response import HeaderPairs, Response
from carrel.server.http.sse_transport import Send

_ORIGIN: Final = re.compile(r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_HEADER_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")
_METHOD: Final = re.compile(rb"[A-Z]{1,32}")
_MAX_AGE_SECONDS: Final = b"3600"
_EXPOSED_HEADERS: Final = (
    b"Accept-Ranges, Allow, Carrel-Agent, Carrel-Redacted, Carrel-Version, Carrel-Warning"
    b", Content-Disposition, Content-Range, ETag, Location, Mcp-Session-Id"
    b", Openwop-Idempotent-Replay, Repr-Digest, Retry-After, WWW-Authenticate, X-Request-Id"
)
_ALLOW_ORIGIN: Final = b"access-control-allow-origin"


def is_origin(text: str) -> bool:
    """Whether a text is one exact origin: scheme, host and optional port."""
    return _ORIGIN.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class CrossOriginAccess:
    """Origins whose pages may call the API; none by default."""

    origins: frozenset[str] = frozenset()

    def preflight(self, method: str, headers: Headers) -> Response | None:
        """Response to a preflight request of an allowed origin, else None.

        Needs no credential and tells nothing about the path.
        """
        requested = headers.get(b"access-control-request-method")
        if method != "OPTIONS" or requested is None or not _METHOD.fullmatch(requested):
            return None
        if not self._is_allowed(headers):
            return None
        names = headers.get(b"access-control-request-headers", b"")
        allowed_headers = [(b"access-control-allow-headers", names)]
        return Response(
            204,
            headers=[
                (b"access-control-allow-methods", requested),
                *(allowed_headers if _HEADER_NAMES.fullmatch(names) else []),
                (b"access-control-max-age", _MAX_AGE_SECONDS),
                (b"vary", b"Access-Control-Request-Method, Access-Control-Request-Headers"),
            ],
        )

    def sender(self, send: Send, headers: Headers) -> Send:
        """Return a `send` that adds the headers for the request's origin to a response.

        A response that allows every origin by itself is unchanged.
        """
        added: HeaderPairs = [(b"vary", b"Origin")]
        if self._is_allowed(headers):
            added.append((_ALLOW_ORIGIN, headers[b"origin"]))
            added.append((b"access-control-expose-headers", _EXPOSED_HEADERS))

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                present = message.get("headers", ())
                if all(name != _ALLOW_ORIGIN for name, _ in present):
                    message = {**message, "headers": [*present, *added]}
            await send(message)

        return send_with_headers

    def _is_allowed(self, headers: Headers) -> bool:
        return headers.get(b"origin", b"").decode("latin-1").lower() in self.origins
