"""Everything that can go wrong between a program and a server, or a directory, as one family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


class CarrelError(Exception):
    """It was not done. What the server said of it stands in the attributes."""

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
        """The status of the answer, None where there was none."""
        self.code = code
        """The word for programs, as in the reference of refusals."""
        self.details: Mapping[str, Any] = dict(details or {})


class ServerUnreachable(CarrelError):
    """No answer came, however often it was asked for."""


class DeadlineExceeded(ServerUnreachable):
    """The answer was not there as a whole when the client's deadline was over."""


class ServerError(CarrelError):
    """The server could not do it, through no fault of the request (5xx, 429)."""


class InvalidResponse(CarrelError):
    """What came as an answer is not one that a server of Carrel gives."""


class ResponseTooLarge(CarrelError):
    """The answer is larger than this client takes; the rest of it was not read."""


class Refusal(CarrelError):
    """The server understood, and will not do it."""


class Malformed(Refusal):
    """The request itself is wrong. It need not have been sent for that."""


class Unauthenticated(Refusal):
    """No credential, or one that is unknown, revoked or expired."""


class Forbidden(Refusal):
    """A good credential that may not do this."""


class Missing(Refusal):
    """It is not there, or not there for this caller."""


class Stale(Refusal):
    """The file is no longer what the caller was looking at."""

    @property
    def current_version(self) -> int | None:
        return self.details.get("currentVersion")


class Taken(Refusal):
    """Something of that name, or in that state, stands in the way."""


class Gone(Refusal):
    """It was there for a time, and that is over."""


class Busy(Refusal):
    """Others kept changing what this depended on; nothing was done."""


class TooLarge(Refusal):
    """The file, the workspace or the request is over its limit."""


class UnusableWorkspace(CarrelError):
    """A workspace that cannot be put into this directory. The directory was not touched."""


class UnsafePath(UnusableWorkspace):
    """A path of the listing would lead elsewhere, or be the same file as another."""


class IncompleteWorkspace(UnusableWorkspace):
    """The server could not give some files of the workspace; ``files`` says which and why."""

    def __init__(self, files: Mapping[str, str]) -> None:
        told = "; ".join(f"{path}: {reason}" for path, reason in sorted(files.items()))
        super().__init__(f"the workspace is not complete: {told}")
        self.files = dict(files)


class NotACarrelDirectory(UnusableWorkspace):
    """The directory holds something that was not put there by materialising."""


class DirectoryLocked(UnusableWorkspace):
    """Somebody else has been materialising into this directory for too long."""


BUSY: Final = "busy"
IN_FLIGHT: Final = "idempotency_in_flight"

_BY_CODE: Final[Mapping[str, type[Refusal]]] = {
    "validation_error": Malformed,
    "unauthenticated": Unauthenticated,
    "forbidden": Forbidden,
    "not_found": Missing,
    "workspace_conflict": Stale,
    "conflict": Taken,
    "expired": Gone,
    BUSY: Busy,
    IN_FLIGHT: Busy,
    "workspace_too_large": TooLarge,
    "payload_too_large": TooLarge,
}


def error_class(status: int, code: str) -> type[CarrelError]:
    """Which error an answer with this status and code is."""
    if status >= 500 or status == 429:
        return ServerError
    if code in _BY_CODE:
        return _BY_CODE[code]
    # Whoever stands between may refuse in words of their own.
    return Unauthenticated if status == 401 else Refusal
