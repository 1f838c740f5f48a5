"""API requests: paths, safe retries, and responses as JSON or errors."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from carrel_client.drivers import Sleep, Steps, TransportFailure, UndecodableBody, UnsendableRequest
from carrel_client.errors import (
    CarrelError,
    DeadlineExceeded,
    InvalidResponse,
    ServerUnreachable,
    ValidationError,
    is_transient,
)
from carrel_client.http_messages import (
    IDEMPOTENCY_KEY,
    HttpRequest,
    HttpResponse,
    Query,
    error_from_response,
)

MAX_ATTEMPTS: Final = 4
FIRST_PAUSE_SECONDS: Final = 0.25
MAX_PAUSE_SECONDS: Final = 30.0
"""A request whose server asks for a longer pause is not retried."""
_PAGE_SIZE: Final = "500"


def api_path(*segments: str) -> str:
    """Return an API path with each segment percent-encoded."""
    return "/v1/" + "/".join(map(encode_segment, segments))


@lru_cache(maxsize=1024)
def encode_segment(segment: str) -> str:
    """Percent-encode a segment. Raises ValidationError if empty or not Unicode."""
    if not segment:
        raise ValidationError("a name must not be empty")
    try:
        text = quote(segment, safe="")
    except UnicodeEncodeError:
        raise ValidationError("a name must be valid Unicode") from None
    return text if segment.strip(".") else text.replace(".", "%2E")


def drop_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def write_headers(
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
    reason: str | None = None,
    run_id: str | None = None,
) -> dict[str, str]:
    """Conditions and provenance of a write, as headers."""
    return drop_none(
        {
            "If-Match": if_match,
            "If-None-Match": if_none_match,
            "Carrel-Reason": reason,
            "Carrel-Run": run_id,
        }
    )


def get_json(path: str, query: Query | None = None) -> Steps[Any]:
    """The JSON of a GET. Raises CarrelError."""
    response = yield from send_with_retry(HttpRequest("GET", path, query or {}))
    return response.json()


def list_pages(path: str, query: Mapping[str, str] | None = None) -> Steps[list[Any]]:
    """The items of every page of a list."""
    items: list[Any] = []
    page_query = {"limit": _PAGE_SIZE, **(query or {})}
    while True:
        page = yield from get_json(path, page_query)
        items += items_of(page)
        if not page.get("next"):
            return items
        page_query["cursor"] = str(page["next"])


def get_page(
    path: str, limit: int, cursor: str, query: Mapping[str, str] | None = None
) -> Steps[Any]:
    """One page of a list, after a cursor."""
    pages = {"limit": str(limit), **({"cursor": cursor} if cursor else {})}
    return (yield from get_json(path, {**(query or {}), **pages}))


def items_of(page: Any) -> list[Any]:
    """Raises InvalidResponse."""
    items = page.get("items") if isinstance(page, dict) else None
    if not isinstance(items, list):
        raise InvalidResponse("the response is not a list")
    return items


def send_json(
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
) -> Steps[Any]:
    """The JSON of the response to an idempotent write. Raises CarrelError."""
    request = HttpRequest(method, path, {}, headers or {}, body)
    return (yield from send_idempotent(request, idempotency_key)).json()


def send_idempotent(
    request: HttpRequest, idempotency_key: str | None = None
) -> Steps[HttpResponse]:
    """Send a write with an idempotency key, so that retries execute it once.

    The caller's key also covers repeated calls.
    """
    request.key_is_generated = idempotency_key is None
    request.headers = {**request.headers, IDEMPOTENCY_KEY: idempotency_key or uuid4().hex}
    return (yield from send_with_retry(request))


def send_with_retry(request: HttpRequest) -> Steps[HttpResponse]:
    """Return a successful response or 304. Raises CarrelError.

    A GET, and a write with an idempotency key, is retried after transient failures.
    """
    request.started_at = time.monotonic() + request.extra_seconds + request.work_seconds
    attempt = 1
    while True:
        try:
            response: HttpResponse = yield request
        except TransportFailure as failure:
            error, requested_pause = transport_error(failure)
        else:
            if response.is_success or response.status == 304:
                return response
            error, requested_pause = response_error(response)
        pause = pause_before_retry(attempt, requested_pause)
        is_safe = request.method == "GET" or IDEMPOTENCY_KEY in request.headers
        if not is_safe or requested_pause is None:
            raise error
        if attempt == MAX_ATTEMPTS or pause > MAX_PAUSE_SECONDS:
            raise error
        try:
            yield Sleep(pause, request.started_at)
        except DeadlineExceeded:
            raise error from None
        attempt += 1


def transport_error(failure: TransportFailure) -> tuple[CarrelError, str | None]:
    """Return the error, and an empty pause if the request may be retried."""
    if isinstance(failure, UndecodableBody):
        return InvalidResponse(f"the response cannot be decoded: {failure}"), None
    if isinstance(failure, UnsendableRequest):
        return ValidationError(f"the request cannot be sent: {failure}"), None
    server = f"the server at {failure.server}" if failure.server else "the server"
    return ServerUnreachable(f"cannot reach {server}: {failure}"), ""


def response_error(response: HttpResponse) -> tuple[CarrelError, str | None]:
    """Return the error and, if the request may be retried, its ``Retry-After``."""
    error = error_from_response(response)
    if not response.may_retry or not is_transient(error):
        return error, None
    return error, response.headers.get("retry-after", "")


def pause_before_retry(attempt: int, requested: str | None) -> float:
    """Return an exponential, randomized pause, at least ``Retry-After``, in seconds."""
    spread = FIRST_PAUSE_SECONDS * float(2 ** (attempt - 1)) * (0.5 + random.random())
    return spread + parse_retry_after(requested or "")


def parse_retry_after(text: str) -> float:
    """Return the seconds of a ``Retry-After``, a number or a date; 0 for any other text."""
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(0.0, moment.timestamp() - time.time())
