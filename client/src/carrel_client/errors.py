"""Client errors: refusals by wire code, failures and unusable directories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


class CarrelError(Exception):
    """The operation failed. Attributes contain the server's response."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """HTTP status of the response, None if there was none."""
        self.code = code
        """The ``error`` of the response, as in the reference of refusals."""
        self.details: Mapping[str, Any] = dict(details or {})

    @property
    def failed_changes(self) -> tuple[Mapping[str, Any], ...]:
        """Of a refused commit: every change that failed, with ``index``, ``path``, ``message``.

        Those with a failed condition have it and the ``currentVersion``.
        """
        return tuple(self.details.get("failed", ()))


class ServerUnreachable(CarrelError):
    """No response arrived, after all retries."""


class DeadlineExceeded(ServerUnreachable):
    """The response was not complete before the client's deadline."""


class InvalidResponse(CarrelError):
    """The response does not have the format of the API."""


class ResponseTooLarge(CarrelError):
    """The response exceeds the client's limit; the rest of it was not read."""


class ServerError(CarrelError):
    """The server failed to handle a valid request (5xx, 429)."""


class CorruptContent(ServerError):
    """Stored bytes are missing or do not match their digest. Not retried."""


class Refusal(CarrelError):
    """The server rejected the request; the class is that of the wire code."""


class ValidationError(Refusal):
    """The request is invalid. The client raises it too, before anything is sent."""


class Unauthenticated(Refusal):
    """The credential is missing, unknown, revoked or expired."""


class Forbidden(Refusal):
    """The credential is valid but does not permit this."""


class NotFound(Refusal):
    """The resource does not exist, or not for this caller."""


class WorkspaceConflict(Refusal):
    """The file is not at the version that the caller's condition names."""

    @property
    def current_version(self) -> int | None:
        return self.details.get("currentVersion")


class UnsupportedStreamMode(Refusal):
    """The server does not provide this stream mode."""


class WorkspaceTooLarge(Refusal):
    """The file, or the workspace with it, exceeds its limit."""


class PayloadTooLarge(Refusal):
    """The request exceeds the server's limit."""


class RangeNotSatisfiable(Refusal):
    """The requested part of the content does not exist."""


class Conflict(Refusal):
    """The name is in use, or the resource's state does not permit this."""

    @property
    def last_number(self) -> int | None:
        """Number of a session's last entry, if it is not the one that ``after`` names."""
        return self.details.get("lastNumber")


class Expired(Refusal):
    """The resource existed for a limited time, which is over."""


class Busy(Refusal):
    """Concurrent changes kept conflicting; nothing was done. Retried by the client."""


class TooManyAttempts(Refusal):
    """Too many failed authentications came from this address (429)."""


class TooManyCommands(Refusal):
    """Too many commands are waiting; nothing was run. Retried by the client."""


class IdempotencyKeyMismatch(Refusal):
    """The idempotency key was used before, for another request."""


class IdempotencyInFlight(Refusal):
    """The first request with this idempotency key is still in progress. Retried."""


class CapabilityNotProvided(Refusal):
    """The server does not offer this capability."""


class UnusableWorkspace(CarrelError):
    """The workspace cannot be written to this directory, which was not changed."""


class UnsafePath(UnusableWorkspace):
    """A path leads out of the directory or names the same file as another path."""


class IncompleteWorkspace(UnusableWorkspace):
    """The content of files is not available; ``files`` maps path to reason."""

    def __init__(self, files: Mapping[str, str]) -> None:
        reasons = "; ".join(f"{path}: {reason}" for path, reason in sorted(files.items()))
        super().__init__(f"the workspace is not complete: {reasons}")
        self.files = dict(files)


class NotACarrelDirectory(UnusableWorkspace):
    """The directory contains files that ``materialize`` did not write."""


class DirectoryLocked(UnusableWorkspace):
    """Another process holds the directory's lock, and waiting timed out."""


CORRUPT: Final = "corrupt"
ERRORS_BY_CODE: Final[Mapping[str, type[Refusal]]] = {
    "validation_error": ValidationError,
    "unauthenticated": Unauthenticated,
    "forbidden": Forbidden,
    "not_found": NotFound,
    "workspace_conflict": WorkspaceConflict,
    "unsupported_stream_mode": UnsupportedStreamMode,
    "workspace_too_large": WorkspaceTooLarge,
    "payload_too_large": PayloadTooLarge,
    "range_not_satisfiable": RangeNotSatisfiable,
    "conflict": Conflict,
    "expired": Expired,
    "busy": Busy,
    "too_many_attempts": TooManyAttempts,
    "too_many_commands": TooManyCommands,
    "idempotency_key_mismatch": IdempotencyKeyMismatch,
    "idempotency_in_flight": IdempotencyInFlight,
    "capability_not_provided": CapabilityNotProvided,
}
"""Class of every refusal by the ``error`` of the response."""


def error_class(status: int, code: str) -> type[CarrelError]:
    """Return the class for a response that is no success."""
    if code in ERRORS_BY_CODE:
        return ERRORS_BY_CODE[code]
    if status >= 500 or status == 429:
        return CorruptContent if code == CORRUPT else ServerError
    # A proxy responds without a code of ours. Its 404 does not mean that a file is absent.
    return Unauthenticated if status == 401 else Refusal


def is_transient(error: CarrelError) -> bool:
    """Whether the same request may succeed when it is sent again."""
    if isinstance(error, Busy | TooManyCommands | IdempotencyInFlight):
        return True
    return isinstance(error, ServerError) and not isinstance(error, CorruptContent)
