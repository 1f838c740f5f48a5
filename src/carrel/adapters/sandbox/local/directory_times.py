"""Directories of a workspace: their modes and times, and those a command changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from msgspec import Struct

from carrel.adapters.sandbox.local.safe_walk import DirEntry
from carrel.core.identifiers import Path
from carrel.core.store.entry import FileAttributes

_DEFAULT_MODE: Final = 0o755
_MODE_BITS: Final = 0o777


def directory_attributes(
    file_times: Mapping[str, int | None], directories: Mapping[Path, FileAttributes]
) -> dict[str, FileAttributes]:
    """Mode and time of every directory by path, the deepest first.

    Its time is the newest of its own and of the files in it; without any, that of the newest
    directory in it.
    """
    times: dict[str, int] = {}
    for text, mtime_ns in file_times.items():
        _add_time(times, _parent(text), mtime_ns)
    own = {path.text: attributes for path, attributes in directories.items()}
    for text, attributes in own.items():
        _add_time(times, text, attributes.mtime_ns)
    child_times: dict[str, int] = {}
    result = {}
    for text in sorted(_with_parents((*map(_parent, file_times), *own)), key=_depth, reverse=True):
        time = times.get(text, child_times.get(text))
        _add_time(child_times, _parent(text), time)
        result[text] = FileAttributes(own[text].mode if text in own else None, time)
    return result


class DirectoryComparison(Struct, frozen=True):
    """Directories that a command leaves, and the state they are compared with."""

    file_times: Mapping[str, int | None]
    """Times of all files after the command."""
    before: Mapping[Path, FileAttributes]
    """Directories that the command was given and has not deleted."""
    walked: Mapping[Path, DirEntry]
    """Directories that may have changed."""

    def created(self) -> dict[Path, FileAttributes]:
        """Return new empty directories, and those with another mode than before."""
        existing = (path.text for path in (*self.walked, *self.before))
        parents = {_parent(text) for text in (*self.file_times, *existing)}
        return {
            path: _attributes(entry)
            for path, entry in self.walked.items()
            if (path not in self.before and path.text not in parents)
            or _mode(entry) != (self.before[path].mode if path in self.before else None)
        }

    def touched(self, created: Mapping[Path, FileAttributes]) -> dict[Path, FileAttributes]:
        """Return directories that are newer than everything in them."""
        derived = directory_attributes(self.file_times, {**self.before, **created})
        return {
            path: _attributes(entry)
            for path, entry in self.walked.items()
            if path not in created and _is_newer(entry, derived.get(path.text))
        }


def _is_newer(entry: DirEntry, derived: FileAttributes | None) -> bool:
    return (
        derived is not None and derived.mtime_ns is not None and entry.mtime_ns > derived.mtime_ns
    )


def _attributes(entry: DirEntry) -> FileAttributes:
    return FileAttributes(_mode(entry), entry.mtime_ns)


def _mode(entry: DirEntry) -> int | None:
    mode = entry.mode & _MODE_BITS
    return None if mode == _DEFAULT_MODE else mode


def _add_time(times: dict[str, int], text: str, mtime_ns: int | None) -> None:
    if mtime_ns is not None and (text not in times or times[text] < mtime_ns):
        times[text] = mtime_ns


def _parent(text: str) -> str:
    return text.rpartition("/")[0]


def _depth(text: str) -> int:
    return text.count("/")


def _with_parents(texts: Iterable[str]) -> Set[str]:
    """Return directories and all above them, without the root."""
    every_text: set[str] = set()
    for text in texts:
        directory = text
        while directory and directory not in every_text:
            every_text.add(directory)
            directory = _parent(directory)
    return every_text
