"""Adapters of pydantic-ai. Needs ``carrel-client[pydantic-ai]``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from carrel_client.pydantic_ai.capability import CarrelCapability
    from carrel_client.pydantic_ai.toolset import CarrelToolset
    from carrel_client.pydantic_ai.transcript import load_messages, record_messages
    from carrel_client.pydantic_ai.workspace import CarrelSandbox, CarrelWorkspace

_LAZY: Final = {
    "CarrelCapability": "capability",
    "CarrelSandbox": "workspace",
    "CarrelToolset": "toolset",
    "CarrelWorkspace": "workspace",
    "load_messages": "transcript",
    "record_messages": "transcript",
}
"""Module of each name, imported on first access."""

__all__ = [
    "CarrelCapability",
    "CarrelSandbox",
    "CarrelToolset",
    "CarrelWorkspace",
    "load_messages",
    "record_messages",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
