"""Workspace files of a persistent instance: updated and compared."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from carrel.adapters.sandbox.local import change_detection, directory_comparison, safe_walk
from carrel.adapters.sandbox.local.directory_comparison import attributes_of, has_attributes
from carrel.adapters.sandbox.local.file_cache import CLOCK_TICK_NS, FileCache
from carrel.adapters.sandbox.local.materialized_files import MaterializedFiles
from carrel.adapters.sandbox.local.safe_walk import DirEntry, DirEntryKind
from carrel.core.identifiers import Digest, Path
from carrel.core.store.entry import FileAttributes
from carrel.ports.sandbox import FileKind, InputFile

MAX_ENTRIES: Final = 50_000
FileStamp = tuple[int, int, int]


class InstanceFiles:
    """Directory of an instance: changes that are not written back yet, other files from the store.

    A modification beats a deletion on either side.
    """

    def __init__(self, root: int, cache: FileCache) -> None:
        self.root, self._cache = root, cache
        self._synced: dict[str, InputFile] = {}
        """File at its last synchronization, by path text."""
        self._stamps: dict[str, FileStamp] = {}
        """Inode and times of files that are known to be unchanged while these are equal."""
        self._synced_directories: dict[Path, FileAttributes] = {}
        self._synced_root: FileAttributes | None = None
        self._root_before = FileAttributes()
        """Attributes of the root before a command; those of the store if it was changed inside."""
        self._compared: tuple[DirEntry, ...] = ()
        """Entries of the last comparison."""

    def update(
        self,
        materialized: MaterializedFiles,
        targets: Mapping[Digest, bytes],
        *,
        read_only: Path | None = None,
    ) -> MaterializedFiles:
        """Add new files and remove deleted ones; return those that could be placed.

        What was changed inside the directory `read_only`, or takes its place, is undone.
        """
        root = directory_comparison.root_attributes(self.root)
        try:
            entries = {entry.text: entry for entry in safe_walk.walk(self.root, MAX_ENTRIES)}
        except safe_walk.TooManyEntries:
            return MaterializedFiles({}, materialized.notes)
        if read_only is not None:
            self._undo_changes(read_only, entries)
        for text in sorted(
            self._synced.keys() - {path.text for path in materialized.files}, reverse=True
        ):
            entry = entries.get(text)
            if entry and self._is_clean(entry):
                self._remove(entry)
            self._forget(text)
        placed_files, notes = {}, list(materialized.notes)
        for path, input_file in materialized.files.items():
            if self._is_up_to_date(path, input_file, entries.get(path.text), targets):
                placed_files[path] = input_file
            else:
                notes.append(f"missing: {path}, its path is occupied in the sandbox")
        self._update_directories(materialized.directories, entries)
        is_unchanged = self._synced_root in {None, root}
        self._synced_root = materialized.root
        directory_comparison.set_root_attributes(
            self.root, materialized.root if is_unchanged else root
        )
        self._root_before = materialized.root
        if is_unchanged:
            self._root_before = directory_comparison.root_attributes(self.root)
        return replace(materialized, files=placed_files, notes=tuple(notes))

    def _undo_changes(self, directory: Path, entries: dict[str, DirEntry]) -> None:
        """Remove files that are not as synchronized, and forget deletions of others."""
        prefix = f"{directory}/"
        places = {place.text for place in (*directory.parents, directory)}
        for text, entry in list(entries.items()):
            is_inside = text in places or text.startswith(prefix)
            if is_inside and entry.kind is not DirEntryKind.DIRECTORY and not self._is_clean(entry):
                self._remove(entry)
                del entries[text]
        for text in [text for text in self._synced if text.startswith(prefix)]:
            if text not in entries or entries[text].kind is DirEntryKind.DIRECTORY:
                self._forget(text)
        for path in [path for path in self._synced_directories if path.text not in entries]:
            if path.text in places or path.text.startswith(prefix):
                del self._synced_directories[path]

    def _update_directories(
        self, directories: Mapping[Path, FileAttributes], entries: Mapping[str, DirEntry]
    ) -> None:
        """Add new directories and remove deleted ones that are empty."""
        for path in sorted(self._synced_directories.keys() - directories.keys(), reverse=True):
            if path.text in entries:
                self._remove_directory(entries[path.text])
            del self._synced_directories[path]
        attributes_inside = {}
        for path, attributes in directories.items():
            entry, synced = entries.get(path.text), self._synced_directories.get(path)
            if entry is None and synced == attributes:
                continue  # deleted inside, and unchanged in the store
            inside = attributes
            if entry is not None and not (synced and has_attributes(entry, synced)):
                inside = attributes_of(entry)  # changed inside
            with suppress(OSError):  # the path is occupied or the disk is full
                self._cache.place_directory(self.root, path)
                self._synced_directories[path] = attributes
                attributes_inside[path] = inside
        for path in sorted(attributes_inside, reverse=True):
            with suppress(OSError):
                self._cache.set_directory_attributes(self.root, path, attributes_inside[path])

    def _is_up_to_date(
        self,
        path: Path,
        input_file: InputFile,
        entry: DirEntry | None,
        targets: Mapping[Digest, bytes],
    ) -> bool:
        if entry is None or entry.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}:
            if self._synced.get(path.text) == input_file:
                return True  # deleted inside, and unchanged in the store
            if entry is not None:
                self._remove_directory(entry)
        elif self._has_content(entry, input_file):
            self._update_attributes(path, input_file, entry)
            self._synced[path.text] = input_file
            return True
        elif not self._is_clean(entry):
            return True
        else:
            self._remove(entry)
        return self._place_file(path, input_file, targets)

    def _place_file(
        self, path: Path, input_file: InputFile, targets: Mapping[Digest, bytes]
    ) -> bool:
        self._forget(path.text)
        try:
            self._cache.place_file(self.root, path, input_file, targets)
        except OSError:  # the path is occupied or the disk is full
            return False
        self._synced[path.text] = input_file
        return True

    def _update_attributes(self, path: Path, input_file: InputFile, entry: DirEntry) -> None:
        """Set mode and time to those of the store, unless they were changed inside."""
        synced = self._synced.get(path.text)
        is_unchanged = synced is None or change_detection.has_attributes(entry, synced)
        if is_unchanged and not change_detection.has_attributes(entry, input_file):
            with suppress(OSError):
                self._cache.set_file_attributes(self.root, path, input_file)

    def compare(self, materialized: MaterializedFiles) -> change_detection.DirectoryChanges:
        """Return files that were changed inside the instance."""
        cutoff = time.time_ns() - CLOCK_TICK_NS
        root = directory_comparison.changed_root(self.root, self._root_before)
        try:
            entries = tuple(safe_walk.walk(self.root, MAX_ENTRIES))
        except safe_walk.TooManyEntries:
            return change_detection.TOO_MANY_CHANGES
        self._compared = entries
        clean = [entry for entry in entries if self._is_clean(entry)]
        self._stamps |= {entry.text: entry.stamp for entry in clean if entry.stamp[1] < cutoff}
        present = {
            entry.text for entry in entries if entry.kind in {DirEntryKind.FILE, DirEntryKind.LINK}
        }
        files = {
            path: input_file
            for path, input_file in materialized.files.items()
            if path.text in present or self._synced.get(path.text) == input_file
        }
        directories = {
            path: attributes
            for path, attributes in materialized.directories.items()
            if path in self._synced_directories
        }
        base = change_detection.InitialFiles(files, directories)
        stamps = {Path(entry.text): entry.stamp for entry in clean}
        hash_entry = partial(safe_walk.hash_entry, self.root)
        changes = change_detection.changes_in_copy(base, stamps, entries, hash_entry)
        return changes if changes.overflow else replace(changes, root=root)

    def restore_modes(self) -> None:
        """Undo the changes of modes that reading unreadable directories needed."""
        safe_walk.restore_modes(self.root, self._compared)
        self._compared = ()

    def mark_synced(
        self, changes: change_detection.DirectoryChanges, read: Mapping[Path, InputFile]
    ) -> None:
        """Record files that were read and deletions that were reported as written back."""
        for path, input_file in read.items():
            text = changes.entries[path].text
            self._forget(text)
            self._synced[text] = input_file
        for path in changes.deleted:
            self._forget(path.text)
            self._synced_directories.pop(path, None)
        self._synced_directories.update(changes.directories)
        self._synced_root = changes.root or self._synced_root

    def _forget(self, text: str) -> None:
        self._synced.pop(text, None)
        self._stamps.pop(text, None)

    def _is_clean(self, entry: DirEntry) -> bool:
        """Whether the file is as last synchronized; read only if its stamp differs."""
        synced = self._synced.get(entry.text)
        if synced is None:
            return False
        return self._stamps.get(entry.text) == entry.stamp or self._matches(entry, synced)

    def _matches(self, entry: DirEntry, input_file: InputFile) -> bool:
        has_attributes = change_detection.has_attributes(entry, input_file)
        return has_attributes and self._has_content(entry, input_file)

    def _has_content(self, entry: DirEntry, input_file: InputFile) -> bool:
        is_link = input_file.kind is FileKind.LINK
        if entry.kind is not (DirEntryKind.LINK if is_link else DirEntryKind.FILE):
            return False
        if entry.size != input_file.blob.size:
            return False
        with suppress(OSError):  # a job may change it concurrently
            return safe_walk.hash_entry(self.root, entry) == input_file.blob.digest
        return False

    def _remove(self, entry: DirEntry) -> None:
        """Remove a file and then its empty parent directories."""
        with suppress(OSError), safe_walk.open_parent(self.root, entry.segments) as parent:
            os.unlink(entry.segments[-1], dir_fd=parent)
        for depth in range(len(entry.segments) - 1, 0, -1):
            try:
                with safe_walk.open_parent(self.root, entry.segments[:depth]) as parent:
                    os.rmdir(entry.segments[depth - 1], dir_fd=parent)
            except OSError:
                return

    def _remove_directory(self, entry: DirEntry) -> None:
        with suppress(OSError), safe_walk.open_parent(self.root, entry.segments) as parent:
            os.rmdir(entry.segments[-1], dir_fd=parent)
