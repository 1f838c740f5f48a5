"""The memory tool of the Anthropic SDK. Needs ``carrel-client[anthropic]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.anthropic.memory_tool import AsyncCarrelMemoryTool, CarrelMemoryTool

_LAZY: Final = {"AsyncCarrelMemoryTool": "memory_tool", "CarrelMemoryTool": "memory_tool"}
"""Module of each name, imported on first access."""

__all__ = ["AsyncCarrelMemoryTool", "CarrelMemoryTool"]

__getattr__ = lazy_attributes(__name__, _LAZY)
