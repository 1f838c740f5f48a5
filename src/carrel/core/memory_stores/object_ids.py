"""Ids of stores, memories and versions, derived from those of workspaces and files."""

from __future__ import annotations

import re
from typing import Final

from carrel.core.errors import NotFound
from carrel.core.identifiers import Scope
from carrel.core.store.entry import Head, version_key

_STORE_ID: Final = re.compile("memstore_([0-9a-f]{24})")
_MEMORY_ID: Final = re.compile("mem_([0-9a-f]{24})")
_VERSION_ID: Final = re.compile("memver_([0-9a-f]{24})")


def store_id(workspace_id: str) -> str:
    return f"memstore_{workspace_id.removeprefix('ws_')}"


def parse_store_id(text: str) -> str:
    """Return the id of the store's workspace. Raises NotFound."""
    return "ws_" + _hex_digits(_STORE_ID, text, "memory store")


def memory_id(file_id: str) -> str:
    return f"mem_{file_id.removeprefix('f_')}"


def parse_memory_id(text: str) -> str:
    """Return the id of the memory's file. Raises NotFound."""
    return "f_" + _hex_digits(_MEMORY_ID, text, "memory")


def version_id(scope: Scope, head: Head) -> str:
    return f"memver_{version_key(scope, head)}"


def parse_version_id(text: str) -> str:
    """Return the key of the version. Raises NotFound."""
    return _hex_digits(_VERSION_ID, text, "memory version")


def _hex_digits(pattern: re.Pattern[str], text: str, noun: str) -> str:
    match = pattern.fullmatch(text)
    if match is None:
        raise NotFound(f"no such {noun}")
    return match[1]
