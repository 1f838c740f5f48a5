"""What a command has changed, told from what it has left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from unicodedata import is_normalized

from msgspec import Struct

from carrel.adapters.sandbox.local.safe_walk import DirEntry, DirEntryKind, Segments, can_hold_paths
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, digest
from carrel.ports.sandbox import ChangedFile, FileKind, InputFile

MOST_CHANGES: Final = 5_000
MOST_NOTES: Final = 20
_SPECIAL: Final = 0o7000
FLOODED: Final = f"far more than {MOST_CHANGES} paths were made: none was kept"
Read = Callable[[DirEntry], bytes]


class DirectoryChanges(Struct, frozen=True):
    changed: Mapping[Path, ChangedFile]
    found: Mapping[Path, DirEntry]
    """Where each changed path is on the disk, whose names need not be in NFC."""
    deleted: frozenset[Path]
    notes: tuple[str, ...]
    overflow: str | None = None
    """Why none of this may be kept, if so."""


def of_overlay(
    base: Mapping[Path, InputFile], upper: Iterable[DirEntry], read: Read
) -> DirectoryChanges:
    """From the upper directory of an overlay: what is in it is what has been written."""
    entries = tuple(upper)
    there = {found.at: found for found in entries}
    lost = frozenset(path for path in base if _is_lost(path, there))
    kept = [found for found in entries if found.kind not in {DirEntryKind.GONE}]
    return _told(base, kept, lost, read)


def _is_lost(path: Path, there: Mapping[Segments, DirEntry]) -> bool:
    parts = tuple(path.text.split("/"))
    itself = there.get(parts)
    if itself is not None:
        return itself.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}
    for depth in range(1, len(parts)):
        above = there.get(parts[:depth])
        if above is not None and above.kind is not DirEntryKind.DIRECTORY:
            return True
    return False


def of_copy(
    base: Mapping[Path, InputFile],
    marks: Mapping[Path, tuple[int, int, int]],
    found: Iterable[DirEntry],
    read: Read,
) -> DirectoryChanges:
    """From a directory that began as a copy: whatever does not bear its mark any more."""
    entries = tuple(found)
    there = {
        found.text: found
        for found in entries
        if found.kind in {DirEntryKind.FILE, DirEntryKind.LINK}
    }
    lost = frozenset(path for path in base if path.text not in there)
    touched = [found for found in entries if not _bears(found, marks)]
    return _told(base, touched, lost, read)


def _bears(found: DirEntry, marks: Mapping[Path, tuple[int, int, int]]) -> bool:
    path = _path(found)
    return isinstance(path, Path) and path.text == found.text and marks.get(path) == found.mark


def _path(found: DirEntry) -> Path | str:
    """Its path, or why it can be none."""
    try:
        return Path(found.text)
    except ValidationError as problem:
        return str(problem)


def _form(found: DirEntry) -> FileKind:
    if found.kind is DirEntryKind.LINK:
        return FileKind.LINK
    return FileKind.EXECUTABLE if found.mode & 0o111 else FileKind.FILE


def _told(
    base: Mapping[Path, InputFile], left: Iterable[DirEntry], lost: frozenset[Path], read: Read
) -> DirectoryChanges:
    changed: dict[Path, ChangedFile] = {}
    places: dict[Path, DirEntry] = {}
    there: set[Path] = set()
    notes: list[str] = []
    for found in sorted(left, key=_is_misspelt):
        if found.kind in {DirEntryKind.DIRECTORY, DirEntryKind.REPLACED}:
            if not can_hold_paths(found):
                notes.append(f"not kept: what is in {found.text[:80]!a}…, whose path is too long")
            continue
        path = _path(found)
        if isinstance(path, str):
            notes.append(f"not kept: {path}")
        elif found.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}:
            notes.append(f"not kept: {path} is neither a file nor a link")
        elif path in there:
            notes.append(f"not kept: {path} is there twice, in two spellings")
        else:
            there.add(path)
            if _differs(base.get(path), found, read):
                notes += _stripped(path, found)
                changed[path] = ChangedFile(_form(found), found.size)
                places[path] = found
    deleted = lost - there
    return DirectoryChanges(
        changed, places, deleted, _few(notes), _overflow(len(changed) + len(deleted))
    )


def _is_misspelt(found: DirEntry) -> bool:
    """Whether its name is another than its path's, which then comes before it."""
    return not is_normalized("NFC", found.text)


def _stripped(path: Path, found: DirEntry) -> Iterator[str]:
    if found.kind is DirEntryKind.FILE and found.mode & _SPECIAL:
        yield f"{path} was kept without its setuid, setgid or sticky bit"


def _differs(before: InputFile | None, found: DirEntry, read: Read) -> bool:
    """Whether it is another file than before: one that was only touched is not."""
    if before is None or before.form is not _form(found) or before.blob.size != found.size:
        return True
    try:
        return digest(read(found)) != before.blob.digest
    except FileNotFoundError:  # whoever is still at work there was quicker: the next time tells
        return False


def _few(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= MOST_NOTES:
        return tuple(notes)
    return (*notes[:MOST_NOTES], f"and {len(notes) - MOST_NOTES} more that were not kept")


def _overflow(number: int) -> str | None:
    if number <= MOST_CHANGES:
        return None
    return f"{number} paths were changed, of {MOST_CHANGES} that may be: none was kept"
