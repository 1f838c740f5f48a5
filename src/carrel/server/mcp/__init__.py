"""MCP server for one agent: tools, resources and prompt.

The SDK is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_LAZY: Final = {
    "REQUEST_SCOPE_KEY": "server",
    "create_server": "server",
    "CallScope": "request_context",
    "McpRequest": "request_context",
    "Subscriptions": "subscriptions",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
