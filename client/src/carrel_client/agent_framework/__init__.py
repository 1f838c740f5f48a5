"""Microsoft Agent Framework on Carrel: files, history and runs.

Needs ``carrel-client[agent-framework]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.agent_framework.context_provider import CarrelContextProvider
    from carrel_client.agent_framework.file_store import CarrelFileStore
    from carrel_client.agent_framework.history_provider import CarrelHistoryProvider
    from carrel_client.agent_framework.tools import CarrelTool, framework_tools

_LAZY: Final = {
    "CarrelContextProvider": "context_provider",
    "CarrelFileStore": "file_store",
    "CarrelHistoryProvider": "history_provider",
    "CarrelTool": "tools",
    "framework_tools": "tools",
}
"""Module of each name, imported on first access."""

__all__ = [
    "CarrelContextProvider",
    "CarrelFileStore",
    "CarrelHistoryProvider",
    "CarrelTool",
    "framework_tools",
]

__getattr__ = lazy_attributes(__name__, _LAZY)
