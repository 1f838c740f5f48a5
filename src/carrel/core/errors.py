"""The refusals: every way Carrel says no. Anything else that is raised is a bug or an outage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class Refusal(Exception):
    """The request was understood and will not be done; the message is safe to show its sender."""

    code: ClassVar[str]

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details: Mapping[str, Any] = details


class ValidationError(Refusal):
    """The request itself is wrong, whatever the state of the world."""

    code = "validation_error"


class Unauthenticated(Refusal):
    """No credential, or one that is unknown, revoked or expired."""

    code = "unauthenticated"


class Forbidden(Refusal):
    """A good credential that may not do this."""

    code = "forbidden"


class NotFound(Refusal):
    """It is not there, or not there for this caller."""

    code = "not_found"


class WorkspaceConflict(Refusal):
    """The file is no longer what the caller was looking at."""

    code = "workspace_conflict"

    def __init__(self, message: str, current_version: int) -> None:
        super().__init__(message, currentVersion=current_version)
        self.current_version = current_version


class WorkspaceTooLarge(Refusal):
    """The file, or the workspace it would join, is over its limit."""

    code = "workspace_too_large"


class PayloadTooLarge(Refusal):
    """The request is larger than anything that could be accepted."""

    code = "payload_too_large"


class Conflict(Refusal):
    """Something of that name, or in that state, stands in the way."""

    code = "conflict"


class Expired(Refusal):
    """It was there for a time, and that is over."""

    code = "expired"


class Busy(Refusal):
    """Others kept changing what this depended on; nothing was done and it may be tried again."""

    code = "busy"


class IdempotencyKeyMismatch(Refusal):
    """An Idempotency-Key came back with another request."""

    code = "idempotency_key_mismatch"


class IdempotencyInFlight(Refusal):
    """The first request with this Idempotency-Key is still being answered."""

    code = "idempotency_in_flight"


class CapabilityNotProvided(Refusal):
    """This server does not offer that capability."""

    code = "capability_not_provided"
