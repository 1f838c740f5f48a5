"""Refusals: the closed set of errors that may be shown to the caller.

Any other exception is a bug or an outage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class Refusal(Exception):
    """The request was understood and is refused; the message is safe to show."""

    code: ClassVar[str]

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details: Mapping[str, Any] = details


class ValidationError(Refusal):
    """The request is invalid, independent of stored state."""

    code = "validation_error"


class UnsupportedStreamMode(Refusal):
    """The stream mode is unknown or not provided by this server."""

    code = "unsupported_stream_mode"


class Unauthenticated(Refusal):
    """The credential is missing, unknown, revoked or expired."""

    code = "unauthenticated"


class Forbidden(Refusal):
    """The credential is valid but does not permit this."""

    code = "forbidden"


class NotFound(Refusal):
    """The resource does not exist, or is not visible to this caller."""

    code = "not_found"


class WorkspaceConflict(Refusal):
    """A precondition failed: the file changed since the caller read it."""

    code = "workspace_conflict"

    def __init__(self, message: str, current_version: int) -> None:
        super().__init__(message, currentVersion=current_version)
        self.current_version = current_version


class WorkspaceTooLarge(Refusal):
    """The file or its workspace would exceed its size limit."""

    code = "workspace_too_large"


class PayloadTooLarge(Refusal):
    """The request body exceeds the server's limit."""

    code = "payload_too_large"


class RangeNotSatisfiable(Refusal):
    """The requested part of the content does not exist."""

    code = "range_not_satisfiable"


class Conflict(Refusal):
    """The name is in use, or the resource's state does not allow this."""

    code = "conflict"


class Expired(Refusal):
    """The resource existed and its lifetime is over."""

    code = "expired"


class Busy(Refusal):
    """Concurrent changes kept conflicting; nothing was changed and a retry is safe."""

    code = "busy"
    is_retried = False
    """Whether the action was attempted often enough, so that no caller repeats it."""

    @classmethod
    def with_conflicts(cls, subject: str = "") -> Busy:
        prefix = f"{subject}: " if subject else ""
        return cls(f"{prefix}concurrent changes kept conflicting; try again")


class TooManyAttempts(Refusal):
    """Too many failed authentications came from this address; try again later."""

    code = "too_many_attempts"


class TooManyCommands(Refusal):
    """Too many commands are waiting; nothing was run and a retry is safe."""

    code = "too_many_commands"


class IdempotencyKeyMismatch(Refusal):
    """The Idempotency-Key was used before with a different request."""

    code = "idempotency_key_mismatch"


class IdempotencyInFlight(Refusal):
    """The first request with this Idempotency-Key is still in progress."""

    code = "idempotency_in_flight"


class CapabilityNotProvided(Refusal):
    """This server does not provide the capability."""

    code = "capability_not_provided"
