"""Accept and Range of a GET: which representation, and which part of it."""

from __future__ import annotations

import re
from typing import Any, Final

from carrel.core.errors import RangeNotSatisfiable
from carrel.server.http.endpoint import Request, RequestHeader

RANGE: Final = RequestHeader("Range", "`bytes=first-last`: this part of the bytes only.")
IF_RANGE: Final = RequestHeader(
    "If-Range", "Ignore Range unless the current ETag is this one, so that parts fit together."
)
_BYTES: Final = "application/octet-stream"
_JSON_RANGES: Final = ("application/json", "application/*", "*/*", "*")
_RANGE: Final = re.compile(r"bytes\s*=\s*([0-9]{0,18})\s*-\s*([0-9]{0,18})\s*", re.IGNORECASE)
_QUALITY: Final = re.compile(r"\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*", re.IGNORECASE)


def wants_bytes(request: Request[Any, Any]) -> bool:
    """Whether the caller prefers the bytes of a file to JSON that contains them.

    So if Accept leaves JSON out or prefers `application/octet-stream`, and if the request declares
    a type other than JSON for itself.
    """
    declared = request.header(b"content-type")
    if declared and not _is_json(declared.partition(";")[0].strip().lower()):
        return True
    accept = request.header(b"accept")
    if not accept or accept == "*/*":
        return False
    qualities = _parse_accept(accept)
    json = next((qualities[name] for name in _JSON_RANGES if name in qualities), 0.0)
    return not json or qualities.get(_BYTES, 0.0) > json


def parse_range(request: Request[Any, Any], etag: str, size: int) -> tuple[int, int] | None:
    """First byte and end of the requested part; None for the whole content.

    Several ranges are answered by the whole, and so is HEAD, for which ranges are not defined.
    Raises RangeNotSatisfiable.
    """
    if request.is_head:
        return None
    value = request.header(b"range")
    if_range = request.header(b"if-range")
    if value is None or (if_range is not None and if_range.strip() != etag):
        return None
    match = _RANGE.fullmatch(value)
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        start, end = max(0, size - int(match[2])), size
    else:
        start, last = int(match[1]), int(match[2] or size)
        if match[2] and last < start:
            return None
        end = min(last + 1, size)
    if start >= end:
        raise RangeNotSatisfiable(f"the content has {size} bytes", size=size)
    return start, end


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _parse_accept(accept: str) -> dict[str, float]:
    """Quality of each media range; a malformed quality counts as 1."""
    qualities: dict[str, float] = {}
    for item in accept.lower().split(","):
        name, *parameters = item.split(";")
        quality = 1.0
        for parameter in parameters:
            if match := _QUALITY.fullmatch(parameter):
                quality = float(match[1])
        qualities[name.strip()] = quality
    return qualities
