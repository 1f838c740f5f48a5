"""Refusals and failures as HTTP: one table, one envelope of error, message and details."""

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
    Unauthenticated,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.server.http.response import JSON_TYPE, Pairs, Response, encode

STATUS: Final[dict[type[Refusal], int]] = {
    ValidationError: 400,
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
    CapabilityNotProvided: 501,
}

EXTRA: Final[dict[type[Refusal], Pairs]] = {
    Unauthenticated: [(b"www-authenticate", b"Bearer")],
    Busy: [(b"retry-after", b"1")],
    IdempotencyInFlight: [(b"retry-after", b"1")],
}

TOO_SLOW: Final = (408, "request_timeout")
HEAD_TOO_LARGE: Final = (431, "headers_too_large")
WRONG_METHOD: Final = (405, "method_not_allowed")
BROKEN: Final = (500, "internal_error")
CORRUPT: Final = (500, "corrupt")
UNAVAILABLE: Final = (503, "unavailable")


class Problem(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True
):
    """Why a request was not done."""

    error: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_]*$")]
    message: Annotated[str, msgspec.Meta(min_length=1)]
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


def problem(
    kind: tuple[int, str],
    message: str,
    details: Mapping[str, Any] | None = None,
    headers: Pairs | None = None,
) -> Response:
    status, code = kind
    more = dict(details) if details else msgspec.UNSET
    body = Problem(error=code, message=message or code, details=more)
    return Response(status, encode(body), [JSON_TYPE, *(headers or ())])


def refusal_response(refusal: Refusal) -> Response:
    """The answer to a refusal, whose message and details are its sender's to see."""
    kind = type(refusal)
    headers = EXTRA.get(kind)
    return problem((STATUS[kind], refusal.code), str(refusal), refusal.details, headers)


def internal_error_response(correlation: str) -> Response:
    """The answer to what nobody foresaw: an id to ask the operator about, and nothing else."""
    said = "something went wrong here; the operator can find it by its correlationId"
    return problem(BROKEN, said, {"correlationId": correlation})


def unavailable_response(correlation: str) -> Response:
    """The answer while something that we depend on cannot be reached: nothing was done."""
    said = "something that this depends on cannot be reached; try again in a while"
    again = [(b"retry-after", b"10")]
    return problem(UNAVAILABLE, said, {"correlationId": correlation}, again)


def corrupt_response(what: str, correlation: str) -> Response:
    """The answer where stored bytes are not what they should be: it names them, no more."""
    return problem(CORRUPT, what, {"correlationId": correlation})
