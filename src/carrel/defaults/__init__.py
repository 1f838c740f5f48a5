"""The files that every tenant starts with, packaged once and kept as plain markdown."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

VERSION: Final = 1
"""Raised whenever a file changes, comes or goes, so that an older Carrel undoes nothing."""

_NAMES: Final = (
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "GUARDRAILS.md",
    "MEMORY_GUIDE.md",
    "CAPABILITIES.md",
    "PLATFORM.md",
    "ROUTER.md",
    "memory/lessons.md",
    "memory/preferences.md",
    "memory/contacts.md",
)

_HERE: Final = files("carrel.defaults") / "files"

FILES: Final[Mapping[str, bytes]] = MappingProxyType(
    {name: _HERE.joinpath(*name.split("/")).read_bytes() for name in _NAMES}
)
"""Content by path, in the order in which one would read them."""
