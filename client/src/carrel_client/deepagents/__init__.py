"""Backends of deepagents. Needs ``carrel-client[deepagents]``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from carrel_client.deepagents.backend import CarrelBackend, CarrelSandbox

_LAZY: Final = {
    "CarrelBackend": "backend",
    "CarrelSandbox": "backend",
}
"""Module of each name, imported on first access."""

__all__ = ["CarrelBackend", "CarrelSandbox"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
