"""Conditional requests: If-None-Match, ETag and 304."""

from __future__ import annotations

from typing import Any, Final

from carrel.core.overlay.write_condition import parse_entity_tags
from carrel.server.http.endpoint import Request
from carrel.server.http.response import JSON_TYPE, Response

AnyRequest = Request[Any, Any]


def json_with_etag(body: bytes, etag: str) -> Response:
    return Response(200, body, [JSON_TYPE, (b"etag", etag.encode()), NO_CACHE])


NO_CACHE: Final = (b"cache-control", b"private, no-cache")


def etag_matches(request: AnyRequest, etag: str) -> bool:
    """Whether If-None-Match contains this ETag, so that 304 is the response."""
    header_value = request.header(b"if-none-match")
    if header_value is None:
        return False
    tags = {tag.removeprefix("W/") for tag in parse_entity_tags(header_value)}
    return etag in tags or "*" in tags


def not_modified(etag: str) -> Response:
    return Response(304, b"", [(b"etag", etag.encode()), NO_CACHE])
