"""Detects the files a command changed from the directory it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from unicodedata import is_normalized

from msgspec import Struct

from carrel.adapters.sandbox.local.safe_walk import DirEntry, DirEntryKind, Segments, can_hold_paths
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, Path
from carrel.ports.sandbox import ChangedFile, FileKind, InputFile

MAX_CHANGES: Final = 5_000
MAX_NOTES: Final = 20
_SPECIAL_MODE_BITS: Final = 0o7000
TOO_MANY_PATHS: Final = f"far more than {MAX_CHANGES} paths were created; no changes were kept"
HashEntry = Callable[[DirEntry], Digest]


class DirectoryChanges(Struct, frozen=True):
    changed: Mapping[Path, ChangedFile]
    entries: Mapping[Path, DirEntry]
    """Directory entry of each changed path; its name need not be in NFC."""
    deleted: frozenset[Path]
    notes: tuple[str, ...]
    overflow: str | None = None
    """Reason why no change may be kept, if there are too many."""


def changes_in_overlay(
    base: Mapping[Path, InputFile], upper: Iterable[DirEntry], hash_entry: HashEntry
) -> DirectoryChanges:
    """Compare an overlay's upper directory: everything in it was written."""
    upper_entries = tuple(upper)
    by_segments = {entry.segments: entry for entry in upper_entries}
    deleted = frozenset(path for path in base if _is_deleted_in_overlay(path, by_segments))
    remaining = [entry for entry in upper_entries if entry.kind not in {DirEntryKind.WHITEOUT}]
    return _build_changes(base, remaining, deleted, hash_entry)


def _is_deleted_in_overlay(path: Path, by_segments: Mapping[Segments, DirEntry]) -> bool:
    parts = tuple(path.text.split("/"))
    entry = by_segments.get(parts)
    if entry is not None:
        return entry.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}
    for depth in range(1, len(parts)):
        parent = by_segments.get(parts[:depth])
        if parent is not None and parent.kind is not DirEntryKind.DIRECTORY:
            return True
    return False


def changes_in_copy(
    base: Mapping[Path, InputFile],
    stamps: Mapping[Path, tuple[int, int, int]],
    walked: Iterable[DirEntry],
    hash_entry: HashEntry,
) -> DirectoryChanges:
    """Compare a copied directory: files whose inode or times differ are read."""
    entries = tuple(walked)
    by_text = {
        entry.text: entry
        for entry in entries
        if entry.kind in {DirEntryKind.FILE, DirEntryKind.LINK}
    }
    deleted = frozenset(path for path in base if path.text not in by_text)
    modified = [entry for entry in entries if not _is_unmodified(entry, stamps)]
    return _build_changes(base, modified, deleted, hash_entry)


def _is_unmodified(entry: DirEntry, stamps: Mapping[Path, tuple[int, int, int]]) -> bool:
    path = _parse_path(entry)
    return isinstance(path, Path) and path.text == entry.text and stamps.get(path) == entry.stamp


def _parse_path(entry: DirEntry) -> Path | str:
    """Return the entry's path, or the reason why its name is not a valid path."""
    try:
        return Path(entry.text)
    except ValidationError as problem:
        return str(problem)


def _file_kind(entry: DirEntry) -> FileKind:
    if entry.kind is DirEntryKind.LINK:
        return FileKind.LINK
    return FileKind.EXECUTABLE if entry.mode & 0o111 else FileKind.FILE


def _build_changes(
    base: Mapping[Path, InputFile],
    modified: Iterable[DirEntry],
    missing: frozenset[Path],
    hash_entry: HashEntry,
) -> DirectoryChanges:
    changed: dict[Path, ChangedFile] = {}
    entries: dict[Path, DirEntry] = {}
    seen_paths: set[Path] = set()
    notes: list[str] = []
    for entry in sorted(modified, key=_is_not_normalized):
        if entry.kind in {DirEntryKind.DIRECTORY, DirEntryKind.OPAQUE_DIRECTORY}:
            if not can_hold_paths(entry):
                notes.append(f"not kept: contents of {entry.text[:80]!a}…, the path is too long")
            continue
        path = _parse_path(entry)
        if isinstance(path, str):
            notes.append(f"not kept: {path}")
        elif entry.kind not in {DirEntryKind.FILE, DirEntryKind.LINK}:
            notes.append(f"not kept: {path} is neither a file nor a symlink")
        elif path in seen_paths:
            notes.append(f"not kept: {path} exists twice in different Unicode forms")
        else:
            seen_paths.add(path)
            if _differs(base.get(path), entry, hash_entry):
                notes += _mode_notes(path, entry)
                changed[path] = ChangedFile(_file_kind(entry), entry.size)
                entries[path] = entry
    deleted = missing - seen_paths
    return DirectoryChanges(
        changed,
        entries,
        deleted,
        _limit_notes(notes),
        _overflow_reason(len(changed) + len(deleted)),
    )


def _is_not_normalized(entry: DirEntry) -> bool:
    """Whether the name is not NFC. Normalized names take precedence over others."""
    return not is_normalized("NFC", entry.text)


def _mode_notes(path: Path, entry: DirEntry) -> Iterator[str]:
    if entry.kind is DirEntryKind.FILE and entry.mode & _SPECIAL_MODE_BITS:
        yield f"{path} lost its setuid, setgid or sticky bit"


def _differs(before: InputFile | None, entry: DirEntry, hash_entry: HashEntry) -> bool:
    """Whether the content or kind differs; a file that was only touched does not."""
    if before is None or before.kind is not _file_kind(entry) or before.blob.size != entry.size:
        return True
    try:
        return hash_entry(entry) != before.blob.digest
    except FileNotFoundError:  # changed concurrently: detected next time
        return False


def _limit_notes(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more that were not kept")


def _overflow_reason(count: int) -> str | None:
    if count <= MAX_CHANGES:
        return None
    return f"{count} paths were changed, more than {MAX_CHANGES}; no changes were kept"
