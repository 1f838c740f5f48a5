"""Which paths may become files of a directory: none that lead out of it or meet in one file."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from carrel.client.errors import UnsafePath

STATE: Final = ".carrel-workspace.json"
"""The one file of a directory that is not of the workspace: what is known of the others."""

Clash = Callable[[Sequence[str]], str | None]
"""Which of some names the file system takes for one that stands before it, if any."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_INVISIBLE: Final = frozenset({"Cf", "Mn"})


def refuse_unsafe(paths: Iterable[str], clash: Clash) -> None:
    """Raises UnsafePath, before anything is written."""
    root: dict[str, Any] = {STATE: None}
    for path in paths:
        if problem := _problem(path):
            raise UnsafePath(f"{_shown(path)} cannot be a file here: {problem}")
        _plant(root, path)
    for names in _alike(root):
        if (name := clash(names)) is not None:
            others = ", ".join(_shown(each) for each in names if each != name)
            raise UnsafePath(f"{_shown(name)} would be the same file here as {others}")


def _problem(path: str) -> str | None:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if _DRIVE.match(path):
        return "it begins like a drive"
    if "\\" in path:
        return "it holds a backslash"
    if any(unicodedata.category(character) == "Cc" for character in path):
        return "it holds a control character"
    segments = path.split("/")
    if "" in segments:
        return "it is absolute or has an empty segment"
    return "it has a '.' or '..' segment" if {".", ".."} & set(segments) else None


def _plant(root: dict[str, Any], path: str) -> None:
    """Put a path into the tree of all. Raises UnsafePath where another stands in its way."""
    *parents, name = path.split("/")
    node = root
    for n, parent in enumerate(parents, 1):
        node = node.setdefault(parent, {})
        if node is None:
            file = "/".join(parents[:n])
            raise UnsafePath(f"{_shown(path)} is within {_shown(file)}, which is a file")
    if name in node:
        raise UnsafePath(f"{_shown(path)} is there already, or is a directory too")
    node[name] = None


def _alike(root: dict[str, Any]) -> Iterator[list[str]]:
    """Names in one directory that some file system might take for the same."""
    waiting = [root]
    while waiting:
        groups = defaultdict(list)
        for name, below in waiting.pop().items():
            groups[_folded(name)].append(name)
            if below:
                waiting.append(below)
        yield from (names for names in groups.values() if len(names) > 1)


def _folded(name: str) -> str:
    """Coarser than any file system: whether two names really are one is for it to say."""
    if name.isascii():
        return name.lower()
    flat = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).upper().casefold())
    return "".join(each for each in flat if unicodedata.category(each) not in _INVISIBLE)


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "…")
