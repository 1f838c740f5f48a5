"""Memory of pydantic-ai-harness. Needs ``carrel-client[pydantic-ai-harness]``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from carrel_client.pydantic_ai_harness.memory_store import CarrelMemoryStore

_LAZY: Final = {
    "CarrelMemoryStore": "memory_store",
}
"""Module of each name, imported on first access."""

__all__ = ["CarrelMemoryStore"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
