"""Refusals and failures as GraphQL errors: one code table, one format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from graphql import GraphQLError

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
from carrel.core.outages import failure_code_and_message
from carrel.ports import CorruptContent

LogFailure: TypeAlias = Callable[[BaseException], str]
"""Logs an unexpected exception and returns its correlation id."""

BAD_USER_INPUT: Final = "BAD_USER_INPUT"
NOT_FOUND: Final = "NOT_FOUND"
FORBIDDEN: Final = "FORBIDDEN"
UNAUTHORIZED: Final = "UNAUTHORIZED"
CONFLICT: Final = "CONFLICT"
INTERNAL: Final = "INTERNAL_SERVER_ERROR"

CODES: Final[dict[type[Refusal], str]] = {
    ValidationError: BAD_USER_INPUT,
    UnsupportedStreamMode: BAD_USER_INPUT,
    Unauthenticated: UNAUTHORIZED,
    Forbidden: FORBIDDEN,
    NotFound: NOT_FOUND,
    WorkspaceConflict: CONFLICT,
    Conflict: CONFLICT,
    Busy: CONFLICT,
    TooManyAttempts: UNAUTHORIZED,
    TooManyCommands: CONFLICT,
    IdempotencyKeyMismatch: CONFLICT,
    IdempotencyInFlight: CONFLICT,
    Expired: CONFLICT,
    WorkspaceTooLarge: BAD_USER_INPUT,
    PayloadTooLarge: BAD_USER_INPUT,
    CapabilityNotProvided: BAD_USER_INPUT,
}


class UnreadableFile(CorruptContent):
    """Stored content of a named file could not be read."""

    def __init__(self, name: str, problem: CorruptContent) -> None:
        super().__init__(f"{name} cannot be read: {problem}")
        self.problem = problem


class ErrorFormatter:
    """Formats the errors of one response; logs each unexpected exception once."""

    def __init__(self, log_failure: LogFailure) -> None:
        self._log_failure = log_failure
        self._logged: list[tuple[BaseException, str]] = []

    @staticmethod
    def format_request_errors(errors: Iterable[GraphQLError]) -> list[dict[str, Any]]:
        """Format errors of the document or its variables."""
        return [
            {**error.formatted, "extensions": {"code": BAD_USER_INPUT, **(error.extensions or {})}}
            for error in errors
        ]

    def format_errors(self, errors: Iterable[GraphQLError]) -> list[dict[str, Any]]:
        return [self._format_error(error) for error in errors]

    def _format_error(self, error: GraphQLError) -> dict[str, Any]:
        formatted = dict[str, Any](error.formatted)
        cause = error.original_error
        while isinstance(cause, GraphQLError):
            cause = cause.original_error
        if cause is None:
            formatted["extensions"] = {"code": BAD_USER_INPUT, **(error.extensions or {})}
        elif isinstance(cause, Refusal):
            formatted["message"] = str(cause)
            extensions = {"code": CODES[type(cause)], "reason": cause.code}
            formatted["extensions"] = {**extensions, "details": dict(cause.details)}
        else:
            formatted |= self._format_failure(cause)
        return formatted

    def _format_failure(self, cause: BaseException) -> dict[str, Any]:
        reason, message = failure_code_and_message(cause)
        extensions = {"code": INTERNAL, "correlationId": self._correlation_id(cause)}
        return {"message": message, "extensions": extensions | {"reason": reason}}

    def _correlation_id(self, error: BaseException) -> str:
        failure = error.problem if isinstance(error, UnreadableFile) else error
        for logged_error, id in self._logged:
            if logged_error is failure:
                return id
        id = self._log_failure(failure)
        self._logged.append((failure, id))
        return id
