"""Adapters of pydantic-ai. Needs ``carrel-client[pydantic-ai]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.pydantic_ai.capability import CarrelCapability
    from carrel_client.pydantic_ai.toolset import CarrelToolset
    from carrel_client.pydantic_ai.transcript import load_messages, record_messages
    from carrel_client.pydantic_ai.workspace import CarrelSandbox, CarrelWorkspace

_LAZY: Final = {
    "CarrelCapability": "capability",
    "CarrelSandbox": "workspace",
    "CarrelToolset": "toolset",
    "CarrelWorkspace": "workspace",
    "load_messages": "transcript",
    "record_messages": "transcript",
}
"""Module of each name, imported on first access."""

__all__ = [
    "CarrelCapability",
    "CarrelSandbox",
    "CarrelToolset",
    "CarrelWorkspace",
    "load_messages",
    "record_messages",
]

__getattr__ = lazy_attributes(__name__, _LAZY)
