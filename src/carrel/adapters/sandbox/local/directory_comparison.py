"""Compares the directories that a command leaves with those it was given."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from carrel.adapters.sandbox.local.safe_walk import DirEntry
from carrel.core.identifiers import Path
from carrel.core.store.entry import FileAttributes

DEFAULT_MODE: Final = 0o755
_MODE_BITS: Final = 0o777
_ENTER: Final = 0o100


class DirectoryComparison(Struct, frozen=True):
    """Directories that a command leaves, and those it was given."""

    files: Collection[Path]
    """All files after the command."""
    before: Mapping[Path, FileAttributes]
    """Directories that the command was given."""
    walked: Mapping[Path, DirEntry]
    """Directories that may have changed."""
    deleted: Collection[Path]
    """Files and directories that the command was given and has deleted."""

    def changed(self) -> dict[Path, FileAttributes]:
        """Return directories that are new and empty, were emptied, or have another mode."""
        parents = _parents_of((*self.files, *(self.before.keys() - self.deleted), *self.walked))
        emptied = _parents_of(self.deleted)
        return {
            path: attributes_of(entry)
            for path, entry in self.walked.items()
            if mode_of(entry) != self._mode_before(path)
            or (path not in parents and (path not in self.before or path in emptied))
        }

    def find_touched(self, changed: Collection[Path]) -> dict[Path, FileAttributes]:
        """Return the other directories that are new or have another time."""
        return {
            path: attributes_of(entry)
            for path, entry in self.walked.items()
            if path not in changed
            and (path not in self.before or not has_attributes(entry, self.before[path]))
        }

    def _mode_before(self, path: Path) -> int | None:
        return self.before[path].mode if path in self.before else None


def has_attributes(entry: DirEntry, attributes: FileAttributes) -> bool:
    """Whether a directory has a mode and time; no time is any."""
    return attributes in {attributes_of(entry), FileAttributes(mode_of(entry))}


def attributes_of(entry: DirEntry) -> FileAttributes:
    return FileAttributes(mode_of(entry), entry.mtime_ns)


def mode_of(entry: DirEntry) -> int | None:
    """Permission bits unless they are usual for a directory."""
    return _unusual_mode(entry.mode)


def root_attributes(root: int) -> FileAttributes:
    """Attributes of an open working directory, which the next command must be able to enter."""
    status = os.fstat(root)
    mode = stat.S_IMODE(status.st_mode) | _ENTER
    return FileAttributes(_unusual_mode(mode), status.st_mtime_ns)


def changed_root(root: int, before: FileAttributes) -> FileAttributes | None:
    """Attributes of the working directory if it has another mode or time."""
    after = root_attributes(root)
    return None if after == before else after


def set_root_attributes(root: int, attributes: FileAttributes) -> None:
    """Set mode and time of an open working directory. Raises OSError."""
    os.fchmod(root, DEFAULT_MODE if attributes.mode is None else attributes.mode)
    if attributes.mtime_ns is not None:
        os.utime(root, ns=(attributes.mtime_ns, attributes.mtime_ns))


def _unusual_mode(mode: int) -> int | None:
    bits = mode & _MODE_BITS
    return None if bits == DEFAULT_MODE else bits


def _parents_of(paths: Iterable[Path]) -> set[Path]:
    return {parent for path in paths for parent in path.parents}
