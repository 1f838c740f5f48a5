"""Backends of deepagents. Needs ``carrel-client[deepagents]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.deepagents.backend import CarrelBackend, CarrelSandbox

_LAZY: Final = {
    "CarrelBackend": "backend",
    "CarrelSandbox": "backend",
}
"""Module of each name, imported on first access."""

__all__ = ["CarrelBackend", "CarrelSandbox"]

__getattr__ = lazy_attributes(__name__, _LAZY)
