"""Adapters of LangGraph: store, checkpoints and tools. Needs ``carrel-client[langgraph]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

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

__getattr__ = lazy_attributes(__name__, _LAZY)
