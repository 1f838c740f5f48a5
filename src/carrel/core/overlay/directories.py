"""Directories of a workspace: what is directly in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from carrel.core.identifiers import Path, TimestampMs
from carrel.core.overlay.compose import File


class DirectoryEntry(Struct, frozen=True):
    """A file or directory in a directory."""

    path: str
    file: File | None
    """None for a directory."""
    size: int
    """Bytes; of a directory, those of all files in it."""
    updated_at: TimestampMs
    """Of a directory, of the newest file in it."""


def list_entries(
    prefix: str, files: Iterable[File], directories: Mapping[Path, TimestampMs]
) -> Sequence[DirectoryEntry]:
    """Entries whose path starts with a prefix, up to the next slash, in order of path.

    `directories` are those that exist by themselves, with their times. In a flat workspace a name
    can be both a file and a directory.
    """
    entries: dict[tuple[str, bool], DirectoryEntry] = {}
    for file in files:
        text, size, at = file.path.text, file.blob.size, file.head.at
        if not text.startswith(prefix):
            continue
        name, slash, _ = text[len(prefix) :].partition("/")
        if slash:
            _add_to_directory(entries, prefix + name, size, at)
        else:
            entries[text, False] = DirectoryEntry(text, file, size, at)
    for path, at in directories.items():
        if path.text.startswith(prefix):
            name = path.text[len(prefix) :].partition("/")[0]
            _add_to_directory(entries, prefix + name, 0, at)
    return [entries[key] for key in sorted(entries)]


def _add_to_directory(
    entries: dict[tuple[str, bool], DirectoryEntry], path: str, size: int, at: TimestampMs
) -> None:
    entry = entries.get((path, True))
    if entry is not None:
        size, at = size + entry.size, max(at, entry.updated_at)
    entries[path, True] = DirectoryEntry(path, None, size, at)
