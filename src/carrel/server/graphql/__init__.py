"""GraphQL API. graphql-core and the schema are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_LAZY: Final = {
    "DocumentCache": "document_cache",
    "GraphqlOperation": "execution",
    "execute": "execution",
    "LIMITS": "query_cost",
    "QueryLimits": "query_cost",
    "SCHEMA": "schema",
    "SCHEMA_TEXT": "schema",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
