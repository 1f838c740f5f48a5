"""Google ADK on Carrel: sessions, artifacts, memories and runs.

Needs ``carrel-client[google-adk]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

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

__getattr__ = lazy_attributes(__name__, _LAZY)
