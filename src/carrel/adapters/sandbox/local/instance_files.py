"""Workspace files of a persistent instance: updated and compared."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from carrel.adapters.sandbox.local import change_detection, safe_walk
from carrel.adapters.sandbox.local.file_cache import CLOCK_TICK_NS, FileCache, MaterializedFiles
from carrel.adapters.sandbox.local.safe_walk import DirEntry, DirEntryKind
from carrel.core.identifiers import Digest, Path
from carrel.ports.sandbox import FileKind, InputFile

MAX_ENTRIES: Final = 50_000
FileStamp = tuple[int, int, int]


class InstanceFiles:
    """Keeps changes that are not yet written back; other files follow the store.

    A modification beats a deletion on either side.
    """

    def __init__(self, root: int, cache: FileCache) -> None:
        self.root, self._cache = root, cache
        self._synced: dict[str, InputFile] = {}
        """File at its last synchronization, by path text."""
        self._stamps: dict[str, FileStamp] = {}
        """Inode and times of files that are known to be unchanged while these are equal."""

    def update(
        self, materialized: MaterializedFiles, targets: Mapping[Digest, bytes]
    ) -> MaterializedFiles:
        """Add new files and remove deleted ones; return those that could be placed."""
        try:
            entries = {entry.text: entry for entry in safe_walk.walk(self.root, MAX_ENTRIES)}
        except safe_walk.TooManyEntries:
            return MaterializedFiles({}, materialized.notes)
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
        return MaterializedFiles(placed_files, tuple(notes))

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
        elif self._matches(entry, input_file):
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

    def compare(self, files: Mapping[Path, InputFile]) -> change_detection.DirectoryChanges:
        """Return files that were changed inside the instance."""
        cutoff = time.time_ns() - CLOCK_TICK_NS
        try:
            entries = tuple(safe_walk.walk(self.root, MAX_ENTRIES))
        except safe_walk.TooManyEntries:
            return change_detection.DirectoryChanges(
                {}, {}, frozenset(), (), change_detection.TOO_MANY_PATHS
            )
        clean = [entry for entry in entries if self._is_clean(entry)]
        self._stamps |= {entry.text: entry.stamp for entry in clean if entry.stamp[1] < cutoff}
        present = {
            entry.text for entry in entries if entry.kind in {DirEntryKind.FILE, DirEntryKind.LINK}
        }
        base = {
            path: input_file
            for path, input_file in files.items()
            if path.text in present or self._synced.get(path.text) == input_file
        }
        stamps = {Path(entry.text): entry.stamp for entry in clean}
        hash_entry = partial(safe_walk.hash_entry, self.root)
        return change_detection.changes_in_copy(base, stamps, entries, hash_entry)

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
        if (
            entry.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}
            or entry.size != input_file.blob.size
        ):
            return False
        file_kind = FileKind.LINK if entry.kind is DirEntryKind.LINK else FileKind.FILE
        if file_kind is FileKind.FILE and entry.mode & 0o111:
            file_kind = FileKind.EXECUTABLE
        if file_kind is not input_file.kind:
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
