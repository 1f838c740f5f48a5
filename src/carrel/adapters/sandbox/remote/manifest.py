"""What a machine elsewhere says is in a directory now, and what that means beside what was there.

Nothing here is believed: not a name, not a size, not that there is an end to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from unicodedata import is_normalized

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, digest
from carrel.ports.sandbox import FileKind, InputFile, ResourceLimits

MOST_CHANGES: Final = 5_000
_MOST_NOTES: Final = 20
_FIELDS: Final = 5
"""Of one file: its type, its mode, its size, its name and where it points to."""
_HASHES: Final = b"hashes"
_END: Final = b"end"
_HASHED: Final = re.compile(rb"([0-9a-f]{64})  \./(.+)", re.DOTALL)
_NUMBER: Final = re.compile(rb"[0-9]{1,15}")
_MODE: Final = re.compile(rb"[0-7]{1,4}")
_LONGEST_TARGET: Final = 4096
_KINDS: Final = {b"p": "a FIFO", b"s": "a socket", b"c": "a device", b"b": "a device"}


class ManifestUnreadable(Exception):
    """What was left cannot be kept: the message says why, for people."""


class ListedFile(Struct, frozen=True):
    """One file as it is now: its digest, and for a link where it points to."""

    form: FileKind
    size: int
    hexadecimal: str
    name: bytes
    """As it is there, which need not be the form in which it is kept."""
    target: bytes | None = None


class Listing(Struct, frozen=True):
    files: Mapping[Path, ListedFile]
    notes: tuple[str, ...] = ()


class RemoteChanges(Struct, frozen=True):
    """What a command has changed; nothing of it where it cannot be kept as a whole."""

    changed: Mapping[Path, ListedFile] = {}
    deleted: frozenset[Path] = frozenset()
    unkept: str | None = None
    notes: tuple[str, ...] = ()


def listed(raw: bytes) -> Listing:
    """Reads what the script `look` has said of files. Raises Unreadable."""
    fields = raw.split(b"\0")
    middle = next((n for n in range(0, len(fields), _FIELDS) if fields[n] == _HASHES), None)
    if middle is None or fields[-2:] != [_END, b""]:
        raise ManifestUnreadable("the list of its files is not whole")
    hashes = {
        said[2]: said[1].decode()
        for said in map(_HASHED.fullmatch, fields[middle + 1 : -2])
        if said
    }
    files: dict[Path, ListedFile] = {}
    notes: list[str] = []
    entries = [fields[start : start + _FIELDS] for start in range(0, middle, _FIELDS)]
    for entry in sorted(entries, key=_is_misspelt):
        _take(entry, hashes, files, notes)
    return Listing(files, _few(notes))


def _is_misspelt(entry: Sequence[bytes]) -> bool:
    """Whether its name is another than its path's, which then comes before it."""
    return not is_normalized("NFC", entry[3].decode("utf-8", "surrogateescape"))


def _take(
    entry: Sequence[bytes],
    hashes: Mapping[bytes, str],
    files: dict[Path, ListedFile],
    notes: list[str],
) -> None:
    kind, mode, size, name, target = entry
    if not (_MODE.fullmatch(mode) and _NUMBER.fullmatch(size)):
        raise ManifestUnreadable("the list of its files makes no sense")
    try:
        path = Path(name.decode("utf-8", "surrogateescape"))
    except ValidationError as problem:
        notes.append(f"not kept: {problem}")
        return
    if path in files:
        notes.append(f"not kept: {path} is there twice, in two spellings")
    elif kind == b"l" and target and len(target) <= _LONGEST_TARGET:
        files[path] = ListedFile(FileKind.LINK, len(target), _plain(target), name, target)
    elif kind != b"f":
        notes.append(f"{path} was not kept: it is {_KINDS.get(kind, 'no file')}")
    elif name not in hashes:
        notes.append(f"{path} was not kept: it could not be read")
    else:
        form = FileKind.EXECUTABLE if int(mode, 8) & 0o111 else FileKind.FILE
        files[path] = ListedFile(form, int(size), hashes[name], name)
        if int(mode, 8) & 0o7000:
            notes.append(f"{path} has lost its special mode bits")


def _plain(content: bytes) -> str:
    return digest(content).removeprefix("sha256:")


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    if len(notes) <= _MOST_NOTES:
        return tuple(notes)
    return (*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more that were not kept")


def differences(
    now: Listing, before: Mapping[Path, InputFile], bounds: ResourceLimits
) -> RemoteChanges:
    """What is other than before. Raises Unreadable where it is more than may be kept."""
    changed = {
        path: seen
        for path, seen in now.files.items()
        if path not in before or not _is_same(seen, before[path])
    }
    deleted = frozenset(before.keys() - now.files.keys())
    if len(changed) + len(deleted) > MOST_CHANGES:
        raise ManifestUnreadable(
            f"it changed {len(changed) + len(deleted)} files, and {MOST_CHANGES} are the most"
        )
    size = sum(seen.size for seen in now.files.values())
    if size > bounds.disk_mb * 2**20:
        raise ManifestUnreadable(f"it left {size} bytes, and {bounds.disk_mb} MB are the most")
    return RemoteChanges(changed, deleted, None, now.notes)


def _is_same(seen: ListedFile, placed: InputFile) -> bool:
    return seen.form == placed.form and f"sha256:{seen.hexadecimal}" == placed.blob.digest
