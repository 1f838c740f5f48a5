"""Asking a server: again where that is safe, and what it refuses as an error."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from carrel.client.drivers import HttpRequest, Sleep, Steps
from carrel.client.errors import (
    BUSY,
    IN_FLIGHT,
    CarrelError,
    DeadlineExceeded,
    InvalidResponse,
    Malformed,
    ServerUnreachable,
    error_class,
)
from carrel.client.httpx_import import httpx

TRIES: Final = 4
FIRST_WAIT: Final = 0.25
LONGEST_WAIT: Final = 30.0
"""Seconds. A server that wants to be left alone for longer is not asked again."""

_KEY: Final = "Idempotency-Key"
_LOST: Final = (
    httpx.NetworkError,
    httpx.TimeoutException,
    httpx.RemoteProtocolError,
    httpx.ProxyError,
)
_PASSING: Final = frozenset({BUSY, IN_FLIGHT})


def api_path(*segments: str) -> str:
    """A path of the API; what the segments hold never adds another, nor takes one away."""
    return "/v1/" + "/".join(encoded(each) for each in segments)


def encoded(segment: str) -> str:
    if not segment:
        raise Malformed("an empty name stands for nothing")
    try:
        text = quote(segment, safe="")
    except UnicodeEncodeError:
        raise Malformed("a name must be valid Unicode") from None
    return text if segment.strip(".") else text.replace(".", "%2E")


def get_json(request: HttpRequest) -> Steps[Any]:
    """The JSON of an answer to a request that changes nothing."""
    return decode_json((yield from send_with_retry(request)))


def send_idempotent(request: HttpRequest) -> Steps[httpx.Response]:
    """The answer to a request that changes something: done once, however often it is sent."""
    marked = replace(request, headers={**request.headers, _KEY: uuid4().hex})
    return (yield from send_with_retry(marked))


def send_with_retry(request: HttpRequest) -> Steps[httpx.Response]:
    """The answer, if it is a good one (304 is). Raises CarrelError."""
    again = request.method == "GET" or _KEY in request.headers
    began = time.monotonic()
    request = replace(request, began=began)
    attempt = 1
    while True:
        found, asked = yield from _attempt(request)
        if isinstance(found, httpx.Response):
            return found
        wait = _wait(attempt, asked)
        if not again or asked is None or attempt == TRIES or wait > LONGEST_WAIT:
            raise found
        try:
            yield Sleep(wait, began)
        except DeadlineExceeded:
            raise found from None
        attempt += 1


def _attempt(request: HttpRequest) -> Steps[tuple[httpx.Response | CarrelError, str | None]]:
    """An answer or what is wrong, and, if it may be tried again, how long one is asked to wait."""
    try:
        answer: httpx.Response = yield request
    except _LOST as problem:
        told = str(problem) or type(problem).__name__
        return ServerUnreachable(f"the server does not answer: {told}"), ""
    except httpx.DecodingError as problem:
        return InvalidResponse(f"the answer cannot be decoded: {problem}"), None
    except (httpx.RequestError, httpx.InvalidURL, UnicodeError) as problem:
        return Malformed(f"the request cannot be sent: {problem}"), None
    if answer.is_success or answer.status_code == 304:
        return answer, None
    refusal = error_from_response(answer)
    passing = answer.status_code == 429 or answer.status_code >= 500 or refusal.code in _PASSING
    return refusal, answer.headers.get("Retry-After", "") if passing else None


def _wait(attempt: int, asked: str | None) -> float:
    """Twice as long each time, spread so that not all come back at once; never less than asked."""
    spread = FIRST_WAIT * float(2 ** (attempt - 1)) * (0.5 + random.random())
    return spread + float(asked) if asked and asked.isascii() and asked.isdigit() else spread


def error_from_response(answer: httpx.Response) -> CarrelError:
    """What an answer says went wrong, whoever gave it: a proxy has no envelope."""
    status = answer.status_code
    try:
        told = json.loads(answer.content)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, Mapping) or not isinstance(told.get("error"), str):
        told = {"error": f"http_{status}", "message": f"{status} {answer.reason_phrase}".strip()}
    details = told.get("details")
    return error_class(status, told["error"])(
        str(told.get("message") or told["error"]),
        status=status,
        code=told["error"],
        details=details if isinstance(details, Mapping) else None,
    )


def decode_json(answer: httpx.Response) -> Any:
    """Raises Garbled for what is no JSON."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        status = answer.status_code
        raise InvalidResponse("the answer is not JSON", status=status) from None
