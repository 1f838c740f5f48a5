"""Conditional requests: If-None-Match, ETag and 304."""

from __future__ import annotations

from typing import Any, Final

from carrel.core.overlay.edit import entity_tags
from carrel.server.http.endpoint import Request
from carrel.server.http.response import JSON_TYPE, Response

Asked = Request[Any, Any]


def file_answer(body: bytes, etag: str) -> Response:
    return Response(200, body, [JSON_TYPE, (b"etag", etag.encode()), _PRIVATE])


_PRIVATE: Final = (b"cache-control", b"private, no-cache")


def matches(call: Asked, etag: str) -> bool:
    """Whether the caller already has what this tag names."""
    known = call.header(b"if-none-match")
    if known is None:
        return False
    tags = {tag.removeprefix("W/") for tag in entity_tags(known)}
    return etag in tags or "*" in tags


def unchanged(etag: str) -> Response:
    return Response(304, b"", [(b"etag", etag.encode()), _PRIVATE])
