"""Memory of pydantic-ai-harness. Needs ``carrel-client[pydantic-ai-harness]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.pydantic_ai_harness.memory_store import CarrelMemoryStore

_LAZY: Final = {
    "CarrelMemoryStore": "memory_store",
}
"""Module of each name, imported on first access."""

__all__ = ["CarrelMemoryStore"]

__getattr__ = lazy_attributes(__name__, _LAZY)
