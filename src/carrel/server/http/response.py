"""HTTP responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

HeaderPairs = list[tuple[bytes, bytes]]

NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
JSON_TYPE: Final = (b"content-type", b"application/json")
EVENT_STREAM: Final = "text/event-stream"

_NO_HEADERS: Final[Mapping[str, str]] = {}
_STREAM_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))

encode: Final = msgspec.json.Encoder().encode
"""Encode a Struct, dict, list or scalar as one line of JSON."""


class Response:
    """Status, headers, and a body or a stream. Header names are in lower case."""

    __slots__ = ("body", "headers", "source", "status", "stored_body")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: HeaderPairs | None = None,
        source: AsyncIterator[bytes] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers: HeaderPairs = [] if headers is None else headers
        self.source = source
        self.stored_body: bytes | None = None
        """Short body to store with an Idempotency-Key; the endpoint completes it for a replay."""

    @classmethod
    def json(
        cls, value: Any, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Response:
        return cls(status, encode(value), [JSON_TYPE, *encode_headers(headers)])

    @classmethod
    def content(
        cls, body: bytes, type: str, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Response:
        """Response with raw bytes of a media type."""
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
        """Stream until the source ends, the client disconnects or the server closes.

        While an event stream is idle, comments are sent as heartbeat.
        """
        content_type = (b"content-type", type.encode("latin-1"))
        return cls(200, b"", [content_type, *_STREAM_HEADERS, *encode_headers(headers)], source)

    def header(self, name: bytes) -> bytes | None:
        return next((value for header_name, value in self.headers if header_name == name), None)

    def to_last_bytes(self) -> bytes:
        """The response on the wire, as the last one of its connection."""
        status = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()
        length = (b"content-length", b"%d" % len(self.body))
        headers = [*self.headers, length, NO_SNIFFING, (b"connection", b"close")]
        lines = [status, *(b"%b: %b" % pair for pair in headers)]
        return b"\r\n".join([*lines, b"", self.body])


def encode_headers(headers: Mapping[str, str]) -> HeaderPairs:
    return [(name.lower().encode("latin-1"), headers[name].encode("latin-1")) for name in headers]
