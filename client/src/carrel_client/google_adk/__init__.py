"""Google ADK on Carrel: sessions, artifacts, memories and runs.

Needs ``carrel-client[google-adk]``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from carrel_client.google_adk.artifacts import CarrelArtifacts
    from carrel_client.google_adk.memories import CarrelMemories
    from carrel_client.google_adk.run import CarrelTool, RunPlugin, adk_tools, agent_options
    from carrel_client.google_adk.sessions import CarrelSessions

_LAZY: Final = {
    "CarrelArtifacts": "artifacts",
    "CarrelMemories": "memories",
    "CarrelSessions": "sessions",
    "CarrelTool": "run",
    "RunPlugin": "run",
    "adk_tools": "run",
    "agent_options": "run",
}
"""Module of each name, imported on first access."""

__all__ = [
    "CarrelArtifacts",
    "CarrelMemories",
    "CarrelSessions",
    "CarrelTool",
    "RunPlugin",
    "adk_tools",
    "agent_options",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
