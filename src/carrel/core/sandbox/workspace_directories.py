"""Directories of a workspace with their modes and times, as a command finds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Path
from carrel.core.store.entry import FileAttributes, Head
from carrel.core.store.tree import Tree

_NS_PER_MS: Final = 1_000_000
_ROOT: Final = ""


class RootDirectory(Struct, frozen=True):
    """Attributes that a command gave a workspace's root, which is no path."""

    mode: int | None = None
    mtime_ns: int | None = None
    revision: int = 0
    """Revision of the workspace that the command's changes were merged with."""


NEW_ROOT: Final = RootDirectory()


class WorkspaceDirectories(Struct, frozen=True):
    """Attributes of every directory of a workspace."""

    directories: Mapping[Path, FileAttributes]
    root: FileAttributes


def mtime_of(head: Head, attributes: FileAttributes | None) -> int:
    """Time that a command gave the path, or else that of its version."""
    if attributes is None or attributes.mtime_ns is None:
        return head.at * _NS_PER_MS
    return attributes.mtime_ns


def list_directories(tree: Tree, root: RootDirectory = NEW_ROOT) -> WorkspaceDirectories:
    """Return the attributes of all directories.

    The time of a directory is the one that a command left, or that of a later version directly in
    it which no command wrote. If no command left one, it is the time of the newest file in it, or
    else of the newest directory.
    """
    own = {path.text: head for path, head in tree.directories.items()}
    revisions = {text: head.revision for text, head in own.items()}
    if root.mtime_ns is not None:
        revisions[_ROOT] = root.revision
    later_times, file_times = _times_by_directory(tree, revisions)
    directory_times: dict[str, int] = {}
    attributes: dict[Path, FileAttributes] = {}
    for text in sorted(_with_parents((*file_times, *own)), key=_depth, reverse=True):
        stored = own[text].directory if text in own else None
        if stored is None:
            time = file_times.get(text, directory_times.get(text))
        else:
            time = mtime_of(own[text], stored)
            time = max(time, later_times.get(text, time))
        attributes[Path(text)] = FileAttributes(stored.mode if stored else None, time)
        _add_time(directory_times, parent_of(text), time)
    if root.mtime_ns is None:
        root_time = file_times.get(_ROOT, directory_times.get(_ROOT))
    else:
        root_time = max(root.mtime_ns, later_times.get(_ROOT, root.mtime_ns))
    return WorkspaceDirectories(attributes, FileAttributes(root.mode, root_time))


def _times_by_directory(
    tree: Tree, revisions: Mapping[str, int]
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Newest times directly in each directory: of later versions by no command, and of files."""
    later: dict[str, int] = {}
    files: dict[str, int] = {}
    for head in (*tree.heads.values(), *tree.directories.values()):
        parent = parent_of(head.path.text)
        attributes = head.entry.attributes if head.entry else head.directory
        time = mtime_of(head, attributes)
        is_by_command = attributes is not None and attributes.mtime_ns is not None
        if not is_by_command and head.revision > revisions.get(parent, head.revision):
            _add_time(later, parent, time)
        if head.entry is not None:
            _add_time(files, parent, time)
    return later, files


def count_empty_directories(tree: Tree, directories: Collection[Path]) -> int:
    """Number of directories, of those given, that no file and no other of them is in."""
    parents = {parent for path in (*tree.heads, *directories) for parent in path.parents}
    return sum(path not in parents for path in set(directories))


def parent_of(text: str) -> str:
    return text.rpartition("/")[0]


def _add_time(times: dict[str, int], text: str, mtime_ns: int | None) -> None:
    if mtime_ns is not None and (text not in times or times[text] < mtime_ns):
        times[text] = mtime_ns


def _depth(text: str) -> int:
    return text.count("/")


def _with_parents(texts: Iterable[str]) -> Set[str]:
    """Return directories and all above them, without the root."""
    every_text: set[str] = set()
    for text in texts:
        directory = text
        while directory and directory not in every_text:
            every_text.add(directory)
            directory = parent_of(directory)
    return every_text
