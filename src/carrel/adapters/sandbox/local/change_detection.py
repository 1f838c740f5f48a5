"""Detects the files a command changed from the directory it leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final
from unicodedata import is_normalized

from msgspec import Struct
from msgspec.structs import replace

from carrel.adapters.sandbox.local.directory_comparison import DirectoryComparison
from carrel.adapters.sandbox.local.safe_walk import DirEntry, DirEntryKind, Segments, can_hold_paths
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, Path
from carrel.core.store.entry import FileAttributes
from carrel.ports.sandbox import ChangedFile, FileKind, InputFile

MAX_CHANGES: Final = 5_000
MAX_NOTES: Final = 20
_SPECIAL_MODE_BITS: Final = 0o7000
_MODE_BITS: Final = 0o777
TOO_MANY_PATHS: Final = f"far more than {MAX_CHANGES} paths were created; no changes were kept"
HashEntry = Callable[[DirEntry], Digest]
_FILE_KINDS: Final = frozenset({DirEntryKind.FILE, DirEntryKind.LINK})
_DIRECTORY_KINDS: Final = frozenset({DirEntryKind.DIRECTORY, DirEntryKind.OPAQUE_DIRECTORY})


class InitialFiles(Struct, frozen=True):
    """Files and directories that a command was given."""

    files: Mapping[Path, InputFile]
    directories: Mapping[Path, FileAttributes] = {}


class DirectoryChanges(Struct, frozen=True):
    changed: Mapping[Path, ChangedFile]
    entries: Mapping[Path, DirEntry]
    """Directory entry of each changed path; its name need not be in NFC."""
    deleted: frozenset[Path]
    notes: tuple[str, ...]
    overflow: str | None = None
    """Reason why no change may be kept, if there are too many."""
    directories: Mapping[Path, FileAttributes] = {}
    root: FileAttributes | None = None


TOO_MANY_CHANGES: Final = DirectoryChanges({}, {}, frozenset(), (), TOO_MANY_PATHS)


def changes_in_overlay(
    base: InitialFiles, upper: Iterable[DirEntry], hash_entry: HashEntry
) -> DirectoryChanges:
    """Compare an overlay's upper directory: everything in it was written."""
    upper_entries = tuple(upper)
    by_segments = {entry.segments: entry for entry in upper_entries}
    deleted = frozenset(
        path for path in base.files if _is_deleted_in_overlay(path, by_segments, _FILE_KINDS)
    ) | frozenset(
        path
        for path in base.directories
        if _is_deleted_in_overlay(path, by_segments, _DIRECTORY_KINDS)
    )
    remaining = [entry for entry in upper_entries if entry.kind not in {DirEntryKind.WHITEOUT}]
    return _build_changes(base, remaining, deleted, hash_entry)


def _is_deleted_in_overlay(
    path: Path, by_segments: Mapping[Segments, DirEntry], kinds: Collection[DirEntryKind]
) -> bool:
    parts = tuple(path.text.split("/"))
    entry = by_segments.get(parts)
    if entry is not None:
        return entry.kind not in kinds
    for depth in range(1, len(parts)):
        parent = by_segments.get(parts[:depth])
        if parent is not None and parent.kind is not DirEntryKind.DIRECTORY:
            return True
    return False


def changes_in_copy(
    base: InitialFiles,
    stamps: Mapping[Path, tuple[int, int, int]],
    walked: Iterable[DirEntry],
    hash_entry: HashEntry,
) -> DirectoryChanges:
    """Compare a copied directory: files whose inode or times differ are read."""
    entries = tuple(walked)
    files = {entry.text for entry in entries if entry.kind in _FILE_KINDS}
    directories = {entry.text for entry in entries if entry.kind in _DIRECTORY_KINDS}
    deleted = frozenset(path for path in base.files if path.text not in files) | frozenset(
        path for path in base.directories if path.text not in directories
    )
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


class _ModifiedEntries(Struct):
    """Entries of a directory that may have changed, by path, with notes on the others."""

    files: dict[Path, DirEntry] = {}
    directories: dict[Path, DirEntry] = {}
    notes: list[str] = []

    def add(self, entry: DirEntry, parents: Collection[Segments]) -> None:
        path = _parse_path(entry)
        if entry.kind in _DIRECTORY_KINDS:
            if not can_hold_paths(entry):
                text = f"not kept: contents of {entry.text[:80]!a}…, the path is too long"
                self.notes.append(text)
            elif isinstance(path, Path):
                self.directories.setdefault(path, entry)
            elif entry.segments not in parents:
                self.notes.append(f"not kept: {path}")
        elif isinstance(path, str):
            self.notes.append(f"not kept: {path}")
        elif entry.kind not in _FILE_KINDS:
            self.notes.append(f"not kept: {path} is neither a file nor a symlink")
        elif path in self.files:
            self.notes.append(f"not kept: {path} exists twice in different Unicode forms")
        else:
            self.files[path] = entry


def _build_changes(
    base: InitialFiles,
    modified: Iterable[DirEntry],
    missing: frozenset[Path],
    hash_entry: HashEntry,
) -> DirectoryChanges:
    walked = _ModifiedEntries()
    by_precedence = sorted(modified, key=_is_not_normalized)
    parents = {entry.segments[:-1] for entry in by_precedence}
    for entry in by_precedence:
        walked.add(entry, parents)
    changed: dict[Path, ChangedFile] = {}
    for path, entry in walked.files.items():
        if change := _find_change(base.files.get(path), entry, hash_entry):
            changed[path] = change
            walked.notes += _mode_notes(path, entry)
    deleted = (missing & base.files.keys()) - walked.files.keys()
    deleted |= (missing & base.directories.keys()) - walked.directories.keys()
    comparison = DirectoryComparison(
        {path for path in base.files if path not in deleted} | changed.keys(),
        base.directories,
        walked.directories,
        deleted,
    )
    directories = comparison.changed()
    touched = comparison.find_touched(directories)
    if len(changed) + len(deleted) + len(directories) + len(touched) > MAX_CHANGES:
        changed, touched = _drop_times(base, changed, touched, walked.notes), {}
    return DirectoryChanges(
        changed,
        {path: walked.files[path] for path in changed},
        deleted,
        _limit_notes(walked.notes),
        _overflow_reason(len(changed) + len(deleted) + len(directories)),
        {**directories, **touched},
    )


def _drop_times(
    base: InitialFiles,
    changed: Mapping[Path, ChangedFile],
    directories: Collection[Path],
    notes: list[str],
) -> dict[Path, ChangedFile]:
    """Return the changes without files that only have another time."""
    touched = {
        path
        for path, file in changed.items()
        if file.blob and (file.kind, file.mode) == (base.files[path].kind, base.files[path].mode)
    }
    for count, noun in ((len(touched), "files"), (len(directories), "directories")):
        if count:
            notes.append(f"not kept: new modification times of {count} {noun}, too many changed")
    return {path: file for path, file in changed.items() if path not in touched}


def _is_not_normalized(entry: DirEntry) -> bool:
    """Whether the name is not NFC. Normalized names take precedence over others."""
    return not is_normalized("NFC", entry.text)


def _mode_notes(path: Path, entry: DirEntry) -> Iterator[str]:
    if entry.kind is DirEntryKind.FILE and entry.mode & _SPECIAL_MODE_BITS:
        yield f"{path} lost its setuid, setgid or sticky bit"


def _find_change(
    before: InputFile | None, entry: DirEntry, hash_entry: HashEntry
) -> ChangedFile | None:
    """Return how a file differs in content, kind, mode or time; None if it does not."""
    kind = _file_kind(entry)
    change = ChangedFile(kind, entry.size, _unusual_mode(entry), entry.mtime_ns)
    if before is None or before.blob.size != entry.size:
        return change
    if (before.kind is FileKind.LINK) != (kind is FileKind.LINK):
        return change
    try:
        if hash_entry(entry) != before.blob.digest:
            return change
    except FileNotFoundError:  # changed concurrently: detected next time
        return None
    return None if has_attributes(entry, before) else replace(change, blob=before.blob)


def _unusual_mode(entry: DirEntry) -> int | None:
    """Return the permission bits unless they are usual for the kind."""
    mode = entry.mode & _MODE_BITS
    is_usual = entry.kind is DirEntryKind.LINK or mode == (0o755 if mode & 0o111 else 0o644)
    return None if is_usual else mode


def has_attributes(entry: DirEntry, file: InputFile) -> bool:
    """Whether an entry has the kind, mode and time of a file."""
    is_same_time = file.mtime_ns is None or file.mtime_ns == entry.mtime_ns
    return is_same_time and (_file_kind(entry), _unusual_mode(entry)) == (file.kind, file.mode)


def _limit_notes(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more that were not kept")


def _overflow_reason(count: int) -> str | None:
    if count <= MAX_CHANGES:
        return None
    return f"{count} paths were changed, more than {MAX_CHANGES}; no changes were kept"
