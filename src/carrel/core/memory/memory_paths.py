"""Paths of the tool `memory`: `/memories` holds the files that the agent itself may write.

`/memories/notes/x.md` is the file `notes/x.md`. A path that policy does not give to the agent is
one below `memory/`: `/memories/ideas.md` is `memory/ideas.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.file_classes import matches_any

ROOT: Final = "/memories"
_HOME: Final = "memory"
"""Directory of what has no place of its own."""
_WILDCARDS: Final = frozenset("*?")


class MemoryPath(Struct, frozen=True):
    """A path that a call names, and the file or directory it stands for."""

    text: str
    """As the call names it, without a trailing slash."""
    path: Path | None
    """None for the root."""


def parse_memory_path(text: str, writable: Iterable[str]) -> MemoryPath:
    """Parse a path below `/memories`. Raises ValidationError."""
    if text != ROOT and not text.startswith(f"{ROOT}/"):
        raise ValidationError(f"Path must start with {ROOT}, got: {text}")
    segments: list[str] = []
    for segment in text.removeprefix(ROOT).split("/"):
        if segment == "..":
            if not segments:
                raise ValidationError(f"Path {text} would escape {ROOT} directory")
            segments.pop()
        elif segment not in {"", "."}:
            segments.append(segment)
    if not segments:
        return MemoryPath(ROOT, None)
    path = Path("/".join(segments))
    is_own = matches_any(path, writable) or segments[0] in _root_names(writable)
    return MemoryPath(text.rstrip("/"), path if is_own else Path(f"{_HOME}/{path}"))


def _root_names(writable: Iterable[str]) -> frozenset[str]:
    """Names at the root that the patterns spell out."""
    names = (pattern.partition("/")[0] for pattern in writable)
    return frozenset(name for name in names if not _WILDCARDS & set(name))
