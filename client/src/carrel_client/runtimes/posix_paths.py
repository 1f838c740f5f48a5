"""Resolution of absolute POSIX paths in a workspace that may have symbolic links."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Sequence
from typing import Any, Final

from carrel_client.drivers import Steps, steps_of
from carrel_client.file_changes import DirectoryEntry
from carrel_client.files import Files

LINK_TYPE: Final = "inode/symlink"
"""Media type of a symbolic link, whose content is the path of its target."""
MAX_LINKS: Final = 40
"""Links that one path may have, as in Linux."""


def is_link(entry: DirectoryEntry) -> bool:
    return entry.content_type == LINK_TYPE


def components(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


class PathResolver:
    """Absolute paths of the files below a root directory."""

    def __init__(self, files: Files[Any], root: str) -> None:
        if posixpath.normpath(root) != root or not root.startswith("/"):
            raise ValueError(f"{root!r} is not an absolute path without '.' and '..'")
        self._files = files
        self.root = root
        self._root_parts = components(root)

    def relative(self, path: str) -> str | None:
        """The path as files have it, empty for the root; None if it is not below the root.

        Raises ValueError for a relative path.
        """
        if not path.startswith("/"):
            raise ValueError(f"path must be absolute, got {path!r}")
        parts, depth = components(path), len(self._root_parts)
        if parts[:depth] != self._root_parts or ".." in parts:
            return None
        return "/".join(parts[depth:])

    def is_above_root(self, path: str) -> bool:
        """Whether a path is the root, or a directory that the root is in."""
        parts = components(path)
        return ".." not in parts and self._root_parts[: len(parts)] == parts

    def absolute(self, path: str) -> str:
        """The absolute path of a file."""
        return posixpath.join(self.root, path) if path else self.root

    def resolve(self, path: str) -> Steps[str]:
        """The canonical path, as ``os.path.realpath`` returns it.

        Missing components stay as written. Raises OSError for a loop of links.
        """
        done: list[str] = []
        pending, links = components(path), 0
        while pending:
            if pending[0] == "..":
                done, pending = done[:-1], pending[1:]
                continue
            end = pending.index("..") if ".." in pending else len(pending)
            candidate = [*done, *pending[:end]]
            position, target = yield from self._first_link(candidate)
            if target is None:
                done, pending = candidate, pending[end:]
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            done = [] if target.startswith("/") else candidate[: position - 1]
            pending = [*components(target), *candidate[position:], *pending[end:]]
        return "/" + "/".join(done)

    def _first_link(self, parts: Sequence[str]) -> Steps[tuple[int, str | None]]:
        """Number of components up to the first link, and its target; None if there is none.

        What exists has no links above it, so the search begins at the end.
        """
        depth = len(self._root_parts)
        if list(parts[:depth]) != self._root_parts:
            return 0, None
        for end in range(len(parts), depth, -1):
            path = "/".join(parts[depth:end])
            entry: DirectoryEntry | None = yield from steps_of(self._files.stat, path)
            if entry is not None and is_link(entry):
                target: bytes = yield from steps_of(self._files.read_bytes, path)
                return end, target.decode(errors="surrogateescape")
            if entry is not None:
                break
        return 0, None
