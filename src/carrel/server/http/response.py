"""What goes back to the client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

Pairs = list[tuple[bytes, bytes]]

JSON_TYPE: Final = (b"content-type", b"application/json")
EVENT_STREAM: Final = "text/event-stream"

_NO_HEADERS: Final[Mapping[str, str]] = {}
_STREAM_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))

encode: Final = msgspec.json.Encoder().encode
"""Any Struct, dict, list or scalar as JSON, on one line."""


class Response:
    """A status, headers, and either bytes or a source of them. Header names are in lower case."""

    __slots__ = ("body", "headers", "source", "status")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: Pairs | None = None,
        source: AsyncIterator[bytes] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers: Pairs = [] if headers is None else headers
        self.source = source

    @classmethod
    def json(
        cls, value: Any, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Response:
        return cls(status, encode(value), [JSON_TYPE, *encode_headers(headers)])

    @classmethod
    def content(
        cls, body: bytes, type: str, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Response:
        """Bytes as they are, of a media type."""
        return cls(
            status, body, [(b"content-type", type.encode("latin-1")), *encode_headers(headers)]
        )

    @classmethod
    def empty(cls, status: int = 204, headers: Mapping[str, str] = _NO_HEADERS) -> Response:
        return cls(status, b"", encode_headers(headers))

    @classmethod
    def stream(
        cls,
        source: AsyncIterator[bytes],
        type: str = EVENT_STREAM,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Response:
        """Chunks as the source gives them, until it ends, the client leaves or the server closes.

        An event stream is kept awake with comments while its source is silent.
        """
        kind = (b"content-type", type.encode("latin-1"))
        return cls(200, b"", [kind, *_STREAM_HEADERS, *encode_headers(headers)], source)

    def header(self, name: bytes) -> bytes | None:
        return next((value for known, value in self.headers if known == name), None)


def encode_headers(headers: Mapping[str, str]) -> Pairs:
    return [(name.lower().encode("latin-1"), headers[name].encode("latin-1")) for name in headers]
