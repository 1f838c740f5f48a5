"""Checks that paths stay within a directory and name different files."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from carrel_client.errors import UnsafePath

STATE_FILE: Final = ".carrel-workspace.json"
"""State file of a directory, not part of the workspace."""

FindClash = Callable[[Sequence[str]], str | None]
"""Returns the first name that the file system treats as an earlier one."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_INVISIBLE: Final = frozenset({"Cf", "Mn"})


def refuse_unsafe(paths: Iterable[str], find_clash: FindClash) -> None:
    """Raises UnsafePath."""
    root: dict[str, Any] = {STATE_FILE: None}
    for path in paths:
        if problem := _problem(path):
            raise UnsafePath(f"{_quote(path)} cannot be a file here: {problem}")
        _add(root, path)
    for names in _similar_names(root):
        if (name := find_clash(names)) is not None:
            others = ", ".join(_quote(other) for other in names if other != name)
            raise UnsafePath(f"{_quote(name)} would be the same file here as {others}")


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


def _add(root: dict[str, Any], path: str) -> None:
    """Add a path to the tree. Raises UnsafePath if it conflicts with another path."""
    *parents, name = path.split("/")
    node = root
    for depth, parent in enumerate(parents, 1):
        node = node.setdefault(parent, {})
        if node is None:
            file = "/".join(parents[:depth])
            raise UnsafePath(f"{_quote(path)} is within {_quote(file)}, which is a file")
    if name in node:
        raise UnsafePath(f"{_quote(path)} is listed twice, or is also a directory")
    node[name] = None


def _similar_names(root: dict[str, Any]) -> Iterator[list[str]]:
    """Yield groups of names in one directory that may be equal to a file system."""
    pending = [root]
    while pending:
        groups = defaultdict(list)
        for name, children in pending.pop().items():
            groups[_fold_name(name)].append(name)
            if children:
                pending.append(children)
        yield from (names for names in groups.values() if len(names) > 1)


def _fold_name(name: str) -> str:
    """Fold a name more coarsely than any file system, to find candidates."""
    if name.isascii():
        return name.lower()
    flat = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).upper().casefold())
    return "".join(char for char in flat if unicodedata.category(char) not in _INVISIBLE)


def _quote(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "…")
