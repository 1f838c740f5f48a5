"""Default markdown files of every tenant, packaged with Carrel."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

VERSION: Final = 1
"""Increased whenever a file is changed, added or removed.

An older Carrel does not undo the files of a newer one.
"""

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

_DIRECTORY: Final = files("carrel.defaults") / "files"

FILES: Final[Mapping[str, bytes]] = MappingProxyType(
    {name: _DIRECTORY.joinpath(*name.split("/")).read_bytes() for name in _NAMES}
)
"""Content by path, in reading order."""
