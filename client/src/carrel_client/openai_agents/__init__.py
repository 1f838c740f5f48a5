"""Adapters of the OpenAI Agents SDK. Needs ``carrel-client[openai-agents]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.openai_agents.agent import agent_tools, create_agent, load_manifest
    from carrel_client.openai_agents.session import CarrelSession
    from carrel_client.openai_agents.snapshots import CarrelSnapshots

_LAZY: Final = {
    "CarrelSession": "session",
    "CarrelSnapshots": "snapshots",
    "agent_tools": "agent",
    "create_agent": "agent",
    "load_manifest": "agent",
}
"""Module of each name, imported on first access."""

__all__ = ["CarrelSession", "CarrelSnapshots", "agent_tools", "create_agent", "load_manifest"]

__getattr__ = lazy_attributes(__name__, _LAZY)
