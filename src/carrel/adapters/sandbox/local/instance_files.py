"""The files of an instance that is kept: brought up to date, and compared with what they were."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from carrel.adapters.sandbox.local import change_detection, safe_walk
from carrel.adapters.sandbox.local.file_cache import TICK, FileCache, MaterializedFiles
from carrel.adapters.sandbox.local.safe_walk import DirEntry, DirEntryKind
from carrel.core.identifiers import Digest, Path, digest
from carrel.ports.sandbox import FileKind, InputFile

MOST_LEFT: Final = 50_000
Mark = tuple[int, int, int]


class InstanceFiles:
    """What was changed inside and has not been brought back is left as it is; all else follows
    what others do. A modification beats a deletion, whoever made it.
    """

    def __init__(self, root: int, cache: FileCache) -> None:
        self.root, self._cache = root, cache
        self._agreed: dict[str, InputFile] = {}
        """What each file was, here as elsewhere, when it was laid or brought back last."""
        self._marks: dict[str, Mark] = {}
        """Of those that need not be read, since nothing can have changed unnoticed."""

    def bring(self, laid: MaterializedFiles, targets: Mapping[Digest, bytes]) -> MaterializedFiles:
        """Lay what is new, remove what is gone; gives what there was a place for."""
        try:
            there = {found.text: found for found in safe_walk.walk(self.root, MOST_LEFT)}
        except safe_walk.TooManyEntries:
            return MaterializedFiles({}, laid.notes)
        for text in sorted(self._agreed.keys() - {path.text for path in laid.files}, reverse=True):
            found = there.get(text)
            if found and self._is_clean(found):
                self._remove(found)
            self._forget(text)
        kept, notes = {}, list(laid.notes)
        for path, placed in laid.files.items():
            if self._is_up_to_date(path, placed, there.get(path.text), targets):
                kept[path] = placed
            else:
                notes.append(f"not there: {path}, for which there is no place here")
        return MaterializedFiles(kept, tuple(notes))

    def _is_up_to_date(
        self, path: Path, placed: InputFile, found: DirEntry | None, targets: Mapping[Digest, bytes]
    ) -> bool:
        if found is None or found.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}:
            if self._agreed.get(path.text) == placed:
                return True  # it was deleted in here, and nobody has changed it since
            if found is not None:
                self._make_room(found)
        elif self._is(found, placed):
            self._agreed[path.text] = placed
            return True
        elif not self._is_clean(found):
            return True
        else:
            self._remove(found)
        return self._lay(path, placed, targets)

    def _lay(self, path: Path, placed: InputFile, targets: Mapping[Digest, bytes]) -> bool:
        self._forget(path.text)
        try:
            self._cache.lay(self.root, path, placed, targets)
        except OSError:  # something of the command's is there, or the disk is full
            return False
        self._agreed[path.text] = placed
        return True

    def compare(self, files: Mapping[Path, InputFile]) -> change_detection.DirectoryChanges:
        """What is other in here than these, because somebody in here made it so."""
        old = time.time_ns() - TICK
        try:
            found = tuple(safe_walk.walk(self.root, MOST_LEFT))
        except safe_walk.TooManyEntries:
            return change_detection.DirectoryChanges(
                {}, {}, frozenset(), (), change_detection.FLOODED
            )
        clean = [each for each in found if self._is_clean(each)]
        self._marks |= {each.text: each.mark for each in clean if each.mark[1] < old}
        there = {each.text for each in found if each.kind in {DirEntryKind.FILE, DirEntryKind.LINK}}
        base = {
            path: placed
            for path, placed in files.items()
            if path.text in there or self._agreed.get(path.text) == placed
        }
        marks = {Path(each.text): each.mark for each in clean}
        return change_detection.of_copy(base, marks, found, self._read)

    def settle(
        self, told: change_detection.DirectoryChanges, read: Mapping[Path, InputFile]
    ) -> None:
        """Take what somebody has read for brought back, and what is gone for known to be."""
        for path, placed in read.items():
            text = told.found[path].text
            self._forget(text)
            self._agreed[text] = placed
        for path in told.deleted:
            self._forget(path.text)

    def _forget(self, text: str) -> None:
        self._agreed.pop(text, None)
        self._marks.pop(text, None)

    def _is_clean(self, found: DirEntry) -> bool:
        """Whether it is what it was, read only where its mark does not tell."""
        agreed = self._agreed.get(found.text)
        if agreed is None:
            return False
        return self._marks.get(found.text) == found.mark or self._is(found, agreed)

    def _is(self, found: DirEntry, placed: InputFile) -> bool:
        if (
            found.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}
            or found.size != placed.blob.size
        ):
            return False
        form = FileKind.LINK if found.kind is DirEntryKind.LINK else FileKind.FILE
        if form is FileKind.FILE and found.mode & 0o111:
            form = FileKind.EXECUTABLE
        if form is not placed.form:
            return False
        with suppress(OSError):  # a job may have been quicker
            return digest(self._read(found)) == placed.blob.digest
        return False

    def _read(self, found: DirEntry) -> bytes:
        return safe_walk.read(self.root, found.at, found.kind)

    def _remove(self, found: DirEntry) -> None:
        """With the directories that are empty then: a file may come to their place."""
        with suppress(OSError), safe_walk.parent_of(self.root, found.at) as parent:
            os.unlink(found.at[-1], dir_fd=parent)
        for depth in range(len(found.at) - 1, 0, -1):
            try:
                with safe_walk.parent_of(self.root, found.at[:depth]) as parent:
                    os.rmdir(found.at[depth - 1], dir_fd=parent)
            except OSError:
                return

    def _make_room(self, found: DirEntry) -> None:
        with suppress(OSError), safe_walk.parent_of(self.root, found.at) as parent:
            os.rmdir(found.at[-1], dir_fd=parent)
