"""Passages of an agent's notes and memory files, as `memory_search` ranks and returns them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from carrel.core.agents.identity_name import IDENTITY_PATH
from carrel.core.identifiers import Path
from carrel.core.overlay.file_classes import matches_any

SEARCHED_FILES: Final = ("MEMORY.md", "notes/**", "memory/**")
"""Searched in addition to what policy lets the agent write."""
PASSAGE_CHARS: Final = 800
"""Characters after which a passage ends at the next line, and that a result has at most."""
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*)")


class MemoryPassage(Struct, frozen=True):
    """Consecutive lines of a file: a paragraph, a list or a part of one."""

    line: int
    """Number of the first line, starting at 1."""
    heading: str
    """Heading above it; empty if there is none."""
    text: str


def is_searched(path: Path, writable: Iterable[str]) -> bool:
    return path != IDENTITY_PATH and matches_any(path, (*SEARCHED_FILES, *writable))


def split_passages(text: str) -> Iterator[MemoryPassage]:
    """Split a text at empty lines, at headings and after PASSAGE_CHARS.

    A heading is a passage of its own only if no text follows it.
    """
    lines: list[str] = []
    first, heading, size, bare_heading = 1, "", 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        new_heading = _HEADING.match(line)
        if lines and (new_heading or not line.strip() or size >= PASSAGE_CHARS):
            yield MemoryPassage(first, heading, "\n".join(lines))
            lines, size = [], 0
        if new_heading:
            if bare_heading:
                yield MemoryPassage(first, heading, bare_heading)
            first, heading, bare_heading = number, new_heading[1].rstrip(" \t#"), line
        elif line.strip():
            first, bare_heading = first if lines else number, ""
            lines.append(line)
            size += len(line)
    if lines or bare_heading:
        yield MemoryPassage(first, heading, "\n".join(lines) or bare_heading)
