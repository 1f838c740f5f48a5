"""Parses a remote machine's file listing and compares it with the input files.

The listing is untrusted: names, sizes and its end are checked.
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

MAX_CHANGES: Final = 5_000
_MAX_NOTES: Final = 20
_FIELDS_PER_FILE: Final = 5
"""Type, mode, size, name and link target."""
_HASHES_MARKER: Final = b"hashes"
_END_MARKER: Final = b"end"
_HASH_LINE: Final = re.compile(rb"([0-9a-f]{64})  \./(.+)", re.DOTALL)
_NUMBER: Final = re.compile(rb"[0-9]{1,15}")
_MODE: Final = re.compile(rb"[0-7]{1,4}")
_MAX_TARGET_BYTES: Final = 4096
_SPECIAL_FILE_NAMES: Final = {b"p": "a FIFO", b"s": "a socket", b"c": "a device", b"b": "a device"}


class InvalidManifest(Exception):
    """The changes cannot be kept; the message is the reason, for people."""


class ListedFile(Struct, frozen=True):
    """One file on the remote machine after the command, with digest and link target."""

    kind: FileKind
    size: int
    sha256: str
    name: bytes
    """Name on the machine, which may differ from the normalized path."""
    target: bytes | None = None


class RemoteManifest(Struct, frozen=True):
    files: Mapping[Path, ListedFile]
    notes: tuple[str, ...] = ()


class RemoteChanges(Struct, frozen=True):
    """Files that a command changed; empty if they cannot all be kept."""

    changed: Mapping[Path, ListedFile] = {}
    deleted: frozenset[Path] = frozenset()
    discard_reason: str | None = None
    notes: tuple[str, ...] = ()


def parse_manifest(raw: bytes) -> RemoteManifest:
    """Parse the output of the `look` script. Raises InvalidManifest."""
    fields = raw.split(b"\0")
    middle = next(
        (
            index
            for index in range(0, len(fields), _FIELDS_PER_FILE)
            if fields[index] == _HASHES_MARKER
        ),
        None,
    )
    if middle is None or fields[-2:] != [_END_MARKER, b""]:
        raise InvalidManifest("the file list is incomplete")
    hashes = {
        match[2]: match[1].decode()
        for match in map(_HASH_LINE.fullmatch, fields[middle + 1 : -2])
        if match
    }
    files: dict[Path, ListedFile] = {}
    notes: list[str] = []
    entries = [
        fields[start : start + _FIELDS_PER_FILE] for start in range(0, middle, _FIELDS_PER_FILE)
    ]
    for entry in sorted(entries, key=_is_not_normalized):
        _add_entry(entry, hashes, files, notes)
    return RemoteManifest(files, _limit_notes(notes))


def _is_not_normalized(entry: Sequence[bytes]) -> bool:
    """Whether the name is not NFC. Normalized names take precedence over others."""
    return not is_normalized("NFC", entry[3].decode("utf-8", "surrogateescape"))


def _add_entry(
    entry: Sequence[bytes],
    hashes: Mapping[bytes, str],
    files: dict[Path, ListedFile],
    notes: list[str],
) -> None:
    kind, mode, size, name, target = entry
    if not (_MODE.fullmatch(mode) and _NUMBER.fullmatch(size)):
        raise InvalidManifest("the file list is malformed")
    try:
        path = Path(name.decode("utf-8", "surrogateescape"))
    except ValidationError as problem:
        notes.append(f"not kept: {problem}")
        return
    if path in files:
        notes.append(f"not kept: {path} exists twice in different Unicode forms")
    elif kind == b"l" and target and len(target) <= _MAX_TARGET_BYTES:
        files[path] = ListedFile(FileKind.LINK, len(target), _hex_digest(target), name, target)
    elif kind != b"f":
        notes.append(f"{path} was not kept: it is {_SPECIAL_FILE_NAMES.get(kind, 'not a file')}")
    elif name not in hashes:
        notes.append(f"{path} was not kept: it could not be read")
    else:
        file_kind = FileKind.EXECUTABLE if int(mode, 8) & 0o111 else FileKind.FILE
        files[path] = ListedFile(file_kind, int(size), hashes[name], name)
        if int(mode, 8) & 0o7000:
            notes.append(f"{path} lost its special mode bits")


def _hex_digest(content: bytes) -> str:
    return digest(content).removeprefix("sha256:")


def _limit_notes(notes: Sequence[str]) -> tuple[str, ...]:
    if len(notes) <= _MAX_NOTES:
        return tuple(notes)
    return (*notes[:_MAX_NOTES], f"and {len(notes) - _MAX_NOTES} more that were not kept")


def find_changes(
    manifest: RemoteManifest, before: Mapping[Path, InputFile], limits: ResourceLimits
) -> RemoteChanges:
    """Compare with the files before. Raises InvalidManifest if over the limits."""
    changed = {
        path: file
        for path, file in manifest.files.items()
        if path not in before or not _is_same(file, before[path])
    }
    deleted = frozenset(before.keys() - manifest.files.keys())
    if len(changed) + len(deleted) > MAX_CHANGES:
        raise InvalidManifest(
            f"it changed {len(changed) + len(deleted)} files, more than {MAX_CHANGES}"
        )
    size = sum(file.size for file in manifest.files.values())
    if size > limits.disk_mb * 2**20:
        raise InvalidManifest(f"it left {size} bytes, more than {limits.disk_mb} MB")
    return RemoteChanges(changed, deleted, None, manifest.notes)


def _is_same(current: ListedFile, previous: InputFile) -> bool:
    return current.kind == previous.kind and f"sha256:{current.sha256}" == previous.blob.digest
