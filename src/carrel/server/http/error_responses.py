"""Error responses: one status table and one envelope (error, message, details)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from carrel.core.errors import (
    Busy,
    CapabilityNotProvided,
    Conflict,
    Expired,
    Forbidden,
    IdempotencyInFlight,
    IdempotencyKeyMismatch,
    NotFound,
    PayloadTooLarge,
    Refusal,
    TooManyAttempts,
    TooManyCommands,
    Unauthenticated,
    UnsupportedStreamMode,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.outages import failed_component, failure_code_and_message
from carrel.server.http.response import JSON_TYPE, HeaderPairs, Response, encode

REFUSAL_STATUS: Final[dict[type[Refusal], int]] = {
    ValidationError: 400,
    UnsupportedStreamMode: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    WorkspaceConflict: 409,
    Conflict: 409,
    Busy: 409,
    IdempotencyKeyMismatch: 409,
    IdempotencyInFlight: 409,
    Expired: 410,
    WorkspaceTooLarge: 413,
    PayloadTooLarge: 413,
    TooManyAttempts: 429,
    TooManyCommands: 429,
    CapabilityNotProvided: 501,
}

REFUSAL_HEADERS: Final[dict[type[Refusal], HeaderPairs]] = {
    Unauthenticated: [(b"www-authenticate", b"Bearer")],
    Busy: [(b"retry-after", b"1")],
    IdempotencyInFlight: [(b"retry-after", b"1")],
    TooManyCommands: [(b"retry-after", b"10")],
}

REQUEST_TIMEOUT: Final = (408, "request_timeout")
HEADERS_TOO_LARGE: Final = (431, "headers_too_large")
METHOD_NOT_ALLOWED: Final = (405, "method_not_allowed")
INTERNAL_ERROR: Final = (500, "internal_error")
CORRUPT: Final = (500, "corrupt")
UNAVAILABLE: Final = (503, "unavailable")
STORAGE_FULL: Final = (507, "storage_full")
FAILURE_STATUS: Final = {
    code: status for status, code in (INTERNAL_ERROR, CORRUPT, UNAVAILABLE, STORAGE_FULL)
}


class Problem(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True
):
    """Error response: code, message and optional details."""

    error: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_]*$")]
    message: Annotated[str, msgspec.Meta(min_length=1)]
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


def problem_response(
    status_and_code: tuple[int, str],
    message: str,
    details: Mapping[str, Any] | None = None,
    headers: HeaderPairs | None = None,
) -> Response:
    status, code = status_and_code
    optional_details = dict(details) if details else msgspec.UNSET
    body = Problem(error=code, message=message or code, details=optional_details)
    return Response(status, encode(body), [JSON_TYPE, *(headers or ())])


def refusal_response(refusal: Refusal) -> Response:
    """Response for a refusal; its message and details may be shown to the caller."""
    refusal_type = type(refusal)
    headers = REFUSAL_HEADERS.get(refusal_type)
    if (seconds := refusal.details.get("retryAfterSeconds")) is not None:
        headers = [(b"retry-after", b"%d" % seconds)]
    return problem_response(
        (REFUSAL_STATUS[refusal_type], refusal.code), str(refusal), refusal.details, headers
    )


def failure_response(error: Exception, correlation_id: str) -> Response:
    """Response for an outage, damaged content or a bug; the caller can quote the id."""
    details = {"correlationId": correlation_id, **failed_component(error)}
    code, message = failure_code_and_message(error)
    status = FAILURE_STATUS[code]
    headers = [] if status == INTERNAL_ERROR[0] else [(b"retry-after", b"10")]
    return problem_response((status, code), message, details, headers)
