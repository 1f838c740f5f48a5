"""Errors, headers and common fields of the Memory Stores API."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.server.http.error_dialect import ErrorDialect
from carrel.server.http.error_responses import Problem

MAX_PAGE: Final = 100
MAX_FULL_PAGE: Final = 20
DEFAULT_PAGE: Final = 20

View = Literal["basic", "full"]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
StoreId = Annotated[str, Meta(pattern="^memstore_[0-9a-f]{24}$")]
MemoryId = Annotated[str, Meta(pattern="^mem_[0-9a-f]{24}$")]
VersionId = Annotated[str, Meta(pattern="^memver_[0-9a-f]{24}$")]


class MemoryStoreRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of bodies and queries: snake_case, unknown fields refused."""


class MemoryStoreResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Base of response bodies: snake_case."""


class MemoryPageQuery(MemoryStoreRequest, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = DEFAULT_PAGE
    page: Annotated[str, Meta(description="`next_page` of the previous page.")] = ""


class MemoryStoreErrorDetails(MemoryStoreResponse, frozen=True):
    type: str
    message: str
    conflicting_memory_id: str | UnsetType = UNSET
    """Memory at, above or below the path."""
    conflicting_path: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    """What is wrong with the server: an outage, damage or a bug."""


class MemoryStoreErrorModel(MemoryStoreResponse, frozen=True):
    """Error response."""

    error: MemoryStoreErrorDetails
    type: Literal["error"] = "error"


_ERROR_TYPES: Final[Mapping[str, str]] = {
    "unauthenticated": "authentication_error",
    "forbidden": "permission_error",
    "not_found": "not_found_error",
    "workspace_conflict": "memory_precondition_failed_error",
    "conflict": "conflict_error",
    "busy": "conflict_error",
    "idempotency_in_flight": "conflict_error",
    "idempotency_key_mismatch": "conflict_error",
    "too_many_attempts": "rate_limit_error",
    "too_many_commands": "rate_limit_error",
    "request_timeout": "timeout_error",
    "unavailable": "overloaded_error",
    "storage_full": "api_error",
    "internal_error": "api_error",
    "corrupt": "api_error",
}
"""Error types by code; every other code is an `invalid_request_error`."""


def _format_error(problem: Problem) -> MemoryStoreErrorModel:
    details: Mapping[str, Any] = {} if isinstance(problem.details, UnsetType) else problem.details
    error_type = _ERROR_TYPES.get(problem.error, "invalid_request_error")
    path, correlation_id = details.get("path"), details.get("correlationId")
    if problem.error == "conflict" and path is not None:
        error_type = "memory_path_conflict_error"
    message = problem.message if correlation_id is None else f"{problem.message} ({correlation_id})"
    return MemoryStoreErrorModel(
        error=MemoryStoreErrorDetails(
            type=error_type,
            message=message,
            conflicting_memory_id=details.get("memoryId", UNSET),
            conflicting_path=UNSET if path is None else path,
            code=UNSET if correlation_id is None else problem.error,
        )
    )


MEMORY_STORE_DIALECT: Final = ErrorDialect(
    [], MemoryStoreErrorModel, _format_error, request_id_header=b"request-id"
)
ENDPOINT_OPTIONS: Final[Mapping[str, Any]] = {
    "tag": "Memory stores",
    "allow_unknown_query": True,
    "error_dialect": MEMORY_STORE_DIALECT,
    "response_headers": ("Request-Id",),
}
"""Options of every endpoint."""


def encode_page(position: str | None) -> str | None:
    return None if position is None else urlsafe_b64encode(position.encode()).decode()


def decode_page(page: str) -> str:
    """Raises ValidationError."""
    try:
        return b64decode(page.encode("ascii"), b"-_", validate=True).decode()
    except ValueError:
        raise ValidationError("page is not the next_page of this list") from None


def parse_time(name: str, text: str | None) -> TimestampMs | None:
    """Parse an RFC 3339 time. Raises ValidationError."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValidationError(f"{name} is not an RFC 3339 time") from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    try:
        return int(at.timestamp() * 1000)
    except (OverflowError, ValueError):
        raise ValidationError(f"{name} is out of range") from None
