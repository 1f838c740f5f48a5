"""Outages and damage: a component is unreachable or full, stored bytes are lost."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Final

FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""System errors that mean an exhausted disk or quota."""


class CorruptContent(Exception):
    """Stored bytes are missing, damaged or do not match their digest."""


class Unreachable(ConnectionError):
    """A component does not answer; a write that was sent may or may not be applied."""

    def __init__(self, component: str, reason: object) -> None:
        super().__init__(f"the {component} is unreachable: {reason}")
        self.component = component


class StorageFull(OSError):
    """A component has no space left; nothing was written."""

    def __init__(self, component: str) -> None:
        super().__init__(errno.ENOSPC, "no space left")
        self.component = component

    def __str__(self) -> str:
        return f"no space is left for the {self.component}; delete something or add space"


def failure_code_and_message(error: BaseException) -> tuple[str, str]:
    """Error code and message that a caller sees for damage, an outage or a bug."""
    match error:
        case CorruptContent():
            return "corrupt", str(error)
        case StorageFull():
            return "storage_full", str(error)
        case OSError() if error.errno in FULL_ERRNOS:
            return "storage_full", "no space is left on a disk of the server; try again later"
        case Unreachable():
            return "unavailable", f"the {error.component} is unreachable; try again later"
        case ConnectionError():
            return "unavailable", "a dependency is unreachable; try again later"
        case _:
            return "internal_error", "internal error; the operator can look up its correlationId"


def failed_component(error: BaseException) -> Mapping[str, str]:
    """Component of an outage as a detail of the response; empty if it is unknown."""
    return {"component": error.component} if isinstance(error, StorageFull | Unreachable) else {}
