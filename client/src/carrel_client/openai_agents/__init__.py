"""Adapters of the OpenAI Agents SDK. Needs ``carrel-client[openai-agents]``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

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


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
