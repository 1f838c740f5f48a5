"""The memory tool of the Anthropic SDK. Needs ``carrel-client[anthropic]``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from carrel_client.anthropic.memory_tool import AsyncCarrelMemoryTool, CarrelMemoryTool

_LAZY: Final = {"AsyncCarrelMemoryTool": "memory_tool", "CarrelMemoryTool": "memory_tool"}
"""Module of each name, imported on first access."""

__all__ = ["AsyncCarrelMemoryTool", "CarrelMemoryTool"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
