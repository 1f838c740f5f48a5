"""Paths as an agent names them, and the paths of files."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass


class InvalidPath(Exception):
    """The path is relative, or leads out of the root."""


@dataclass(frozen=True, slots=True)
class VirtualPath:
    """A file or directory by both of its names."""

    path: str
    """As files know it: relative, empty for the root."""
    base: str
    """What stands before it in the names that the agent uses."""

    def name_of(self, path: str) -> str:
        """The agent's name of another file."""
        return f"{self.base}/{path}"

    @property
    def directory(self) -> str:
        """Prefix of everything below it."""
        return f"{self.path}/" if self.path else ""

    def relative(self, path: str) -> str:
        """A path below it, or its own last part."""
        if path == self.path:
            return posixpath.basename(path)
        return path[len(self.directory) :]


def parse_path(name: str, root: str) -> VirtualPath:
    """The file of an absolute name; names outside of the root are taken as below it.

    So ``/workspace/a`` and ``/a`` are the same file if the root is ``/workspace``. Raises
    InvalidPath.
    """
    if not name.startswith("/") or "\0" in name:
        raise InvalidPath(f"{name!r} is not an absolute path")
    if ".." in name.split("/"):
        raise InvalidPath(f"{name!r} has a part '..'")
    path = posixpath.normpath(name).lstrip("/")
    inside = root.strip("/")
    if inside and (path == inside or path.startswith(f"{inside}/")):
        return VirtualPath(path[len(inside) + 1 :], f"/{inside}")
    return VirtualPath(path, "")
