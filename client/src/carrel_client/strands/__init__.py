"""Strands Agents on Carrel: storage, memories, sessions and runs.

Needs ``carrel-client[strands]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.strands.memory_store import CarrelMemoryStore
    from carrel_client.strands.run import CarrelTool, RunHooks, agent_options, strands_tools
    from carrel_client.strands.session_repository import CarrelSessionRepository
    from carrel_client.strands.storage import CarrelStorage

_LAZY: Final = {
    "CarrelMemoryStore": "memory_store",
    "CarrelSessionRepository": "session_repository",
    "CarrelStorage": "storage",
    "CarrelTool": "run",
    "RunHooks": "run",
    "agent_options": "run",
    "strands_tools": "run",
}
"""Module of each name, imported on first access."""

__all__ = [
    "CarrelMemoryStore",
    "CarrelSessionRepository",
    "CarrelStorage",
    "CarrelTool",
    "RunHooks",
    "agent_options",
    "strands_tools",
]

__getattr__ = lazy_attributes(__name__, _LAZY)
