"""Adapters of LangGraph: store, checkpoints and tools. Needs ``carrel-client[langgraph]``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from carrel_client.langgraph.async_store import AsyncCarrelStore
    from carrel_client.langgraph.checkpointer import CarrelSaver
    from carrel_client.langgraph.store import CarrelItem, CarrelStore
    from carrel_client.langgraph.tools import langchain_tools, record_messages

_LAZY: Final = {
    "AsyncCarrelStore": "async_store",
    "CarrelSaver": "checkpointer",
    "CarrelItem": "store",
    "CarrelStore": "store",
    "langchain_tools": "tools",
    "record_messages": "tools",
}
"""Module of each name, imported on first access."""

__all__ = [
    "AsyncCarrelStore",
    "CarrelItem",
    "CarrelSaver",
    "CarrelStore",
    "langchain_tools",
    "record_messages",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
