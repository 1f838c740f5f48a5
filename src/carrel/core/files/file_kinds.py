"""What a path is on a disk, as the media type of its entry tells it.

So no table has to know of it: a link is an entry of a type of its own whose content is where it
points to, and a file that can be run says so at the end of its type.
"""

from __future__ import annotations

from typing import Final

from carrel.core.identifiers import Path
from carrel.core.store.tree import MARKDOWN

FILE: Final = "file"
EXECUTABLE: Final = "executable"
LINK: Final = "link"

LINK_TYPE: Final = "inode/symlink"
PLAIN: Final = "text/plain"
BYTES: Final = "application/octet-stream"
LOOKED_AT: Final = 8192
"""How much of a content tells whether it is text."""

_MARK: Final = "; executable"
_GUESSED: Final = frozenset({MARKDOWN, PLAIN, BYTES, LINK_TYPE})


def form_of(type: str) -> str:
    if type == LINK_TYPE:
        return LINK
    return EXECUTABLE if type.endswith(_MARK) else FILE


def bare(type: str) -> str:
    """The type of the content alone."""
    return type.removesuffix(_MARK)


def type_for(form: str, path: Path, content: bytes, was: str | None = None) -> str:
    """The type of an entry of this form; what somebody said of its content before is kept."""
    if form == LINK:
        return LINK_TYPE
    said = None if was is None else bare(was)
    told = _guess(path, content) if said is None or said in _GUESSED else said
    return told + _MARK if form == EXECUTABLE else told


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:LOOKED_AT]


def _guess(path: Path, content: bytes) -> str:
    if is_binary(content):
        return BYTES
    try:
        content.decode()
    except UnicodeDecodeError:
        return BYTES
    return MARKDOWN if path.name.lower().endswith(".md") else PLAIN
