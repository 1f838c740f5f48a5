"""Carrel: a private desk for every AI agent, with layered, versioned files frozen for every run."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

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
from carrel.core.version import VERSION as __version__

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from os import PathLike

    from carrel.ports import CorruptContent
    from carrel.server.python import (
        Carrel,
        Event,
        EventStream,
        File,
        FileRow,
        Files,
        Run,
        Workspace,
    )
    from carrel.settings import SettingsError

__all__ = [
    "Busy",
    "CapabilityNotProvided",
    "Carrel",
    "Conflict",
    "CorruptContent",
    "Event",
    "EventStream",
    "Expired",
    "File",
    "FileRow",
    "Files",
    "Forbidden",
    "IdempotencyInFlight",
    "IdempotencyKeyMismatch",
    "NotFound",
    "PayloadTooLarge",
    "Refusal",
    "Run",
    "SettingsError",
    "Unauthenticated",
    "ValidationError",
    "Workspace",
    "WorkspaceConflict",
    "WorkspaceTooLarge",
    "__version__",
    "open",
]

_LATER: Final = {
    **dict.fromkeys(
        ("Carrel", "Event", "EventStream", "File", "FileRow", "Files", "Run", "Workspace"),
        "carrel.server.python",
    ),
    "CorruptContent": "carrel.ports",
    "SettingsError": "carrel.settings",
}
"""What is imported when it is first asked for, so that importing carrel stays cheap."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def open(
    where: str | PathLike[str] = "carrel-data", **settings: Any
) -> AbstractAsyncContextManager[Carrel]:
    """Open a store in this process: a directory, or the URL of a database.

    Use it as ``async with carrel.open("my-data") as desk``. Settings are those of the server, by
    the same names; the environment is not read. Raises Unusable for settings that are none.
    """
    from carrel.wiring.inprocess import open_carrel  # noqa: PLC0415 - only where it is used

    return open_carrel(where, settings)
