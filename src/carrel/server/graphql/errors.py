"""Refusals and failures as GraphQL errors: one table, one shape."""

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
    Unauthenticated,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.ports import CorruptContent

Tell: TypeAlias = Callable[[BaseException], str]
"""Writes down what nobody foresaw, and gives the id under which the operator finds it."""

BAD_USER_INPUT: Final = "BAD_USER_INPUT"
NOT_FOUND: Final = "NOT_FOUND"
FORBIDDEN: Final = "FORBIDDEN"
UNAUTHORIZED: Final = "UNAUTHORIZED"
CONFLICT: Final = "CONFLICT"
INTERNAL: Final = "INTERNAL_SERVER_ERROR"

CODES: Final[dict[type[Refusal], str]] = {
    ValidationError: BAD_USER_INPUT,
    Unauthenticated: UNAUTHORIZED,
    Forbidden: FORBIDDEN,
    NotFound: NOT_FOUND,
    WorkspaceConflict: CONFLICT,
    Conflict: CONFLICT,
    Busy: CONFLICT,
    IdempotencyKeyMismatch: CONFLICT,
    IdempotencyInFlight: CONFLICT,
    Expired: CONFLICT,
    WorkspaceTooLarge: BAD_USER_INPUT,
    PayloadTooLarge: BAD_USER_INPUT,
    CapabilityNotProvided: BAD_USER_INPUT,
}

FAILED: Final = "something went wrong here; the operator can find it by its correlationId"


class UnreadableFile(Exception):
    """Stored bytes cannot be had: said of one file, by its name."""

    def __init__(self, what: str, problem: CorruptContent) -> None:
        super().__init__(f"{what} cannot be read: {problem}")
        self.problem = problem


class ErrorFormatter:
    """The errors of one answer. What nobody foresaw is told once, however many fields it hit."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told: list[tuple[BaseException, str]] = []

    @staticmethod
    def of_request(errors: Iterable[GraphQLError]) -> list[dict[str, Any]]:
        """What is wrong with a document or its variables, whatever noticed it."""
        return [
            {**error.formatted, "extensions": {"code": BAD_USER_INPUT, **(error.extensions or {})}}
            for error in errors
        ]

    def shown(self, errors: Iterable[GraphQLError]) -> list[dict[str, Any]]:
        return [self._shown(error) for error in errors]

    def _shown(self, error: GraphQLError) -> dict[str, Any]:
        shape = dict[str, Any](error.formatted)
        cause = error.original_error
        while isinstance(cause, GraphQLError):
            cause = cause.original_error
        if cause is None:
            shape["extensions"] = {"code": BAD_USER_INPUT, **(error.extensions or {})}
        elif isinstance(cause, Refusal):
            shape["message"] = str(cause)
            told = {"code": CODES[type(cause)], "reason": cause.code}
            shape["extensions"] = {**told, "details": dict(cause.details)}
        else:
            shape["message"] = str(cause) if isinstance(cause, UnreadableFile) else FAILED
            shape["extensions"] = {"code": INTERNAL, "correlationId": self._id_of(cause)}
        return shape

    def _id_of(self, error: BaseException) -> str:
        failure = error.problem if isinstance(error, UnreadableFile) else error
        for known, id in self._told:
            if known is failure:
                return id
        id = self._tell(failure)
        self._told.append((failure, id))
        return id
