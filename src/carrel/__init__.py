"""Layered, versioned files for AI agents, reviewed and frozen for every run."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from carrel.core.version import VERSION as __version__
from carrel_client.errors import (
    Busy,
    CapabilityNotProvided,
    CarrelError,
    Conflict,
    CorruptContent,
    Expired,
    Forbidden,
    IdempotencyInFlight,
    IdempotencyKeyMismatch,
    NotFound,
    PayloadTooLarge,
    RangeNotSatisfiable,
    Refusal,
    TooManyAttempts,
    TooManyCommands,
    Unauthenticated,
    UnsupportedStreamMode,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from os import PathLike

    from carrel.settings import SettingsError
    from carrel.wiring.in_process import InProcessClient

__all__ = [
    "Busy",
    "CapabilityNotProvided",
    "CarrelError",
    "Conflict",
    "CorruptContent",
    "Expired",
    "Forbidden",
    "IdempotencyInFlight",
    "IdempotencyKeyMismatch",
    "InProcessClient",
    "NotFound",
    "PayloadTooLarge",
    "RangeNotSatisfiable",
    "Refusal",
    "SettingsError",
    "TooManyAttempts",
    "TooManyCommands",
    "Unauthenticated",
    "UnsupportedStreamMode",
    "ValidationError",
    "WorkspaceConflict",
    "WorkspaceTooLarge",
    "__version__",
    "open",
]

_LAZY: Final = {
    "InProcessClient": "carrel.wiring.in_process",
    "SettingsError": "carrel.settings",
}
"""Names imported on first access, so that ``import carrel`` stays cheap."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def open(
    location: str | PathLike[str] = "carrel-data", **settings: Any
) -> AbstractAsyncContextManager[InProcessClient]:
    """Open a store in this process: a directory, or the URL of a database.

    ``async with carrel.open("my-data") as client`` yields a ``carrel_client`` client with the
    rights of the first tenant's owner. Settings have the same names as the server's; the
    environment is not read. Raises SettingsError.
    """
    from carrel.wiring.in_process import open_in_process  # noqa: PLC0415 - imports the server

    return open_in_process(location, settings)
