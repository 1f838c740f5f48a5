"""Files and directories that a command will find, and what identifies them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path as File
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Digest, Path
from carrel.core.store.entry import FileAttributes
from carrel.ports.sandbox import FileKind, InputFile

_MAX_TARGET_BYTES: Final = 4095


class MaterializedFiles(Struct, frozen=True):
    """Files that a command will find, with notes on those that are unsupported."""

    files: Mapping[Path, InputFile]
    notes: tuple[str, ...]
    farm: File | None = None
    directories: Mapping[Path, FileAttributes] = {}
    root: FileAttributes = FileAttributes()

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.directories


def contents_only(files: Mapping[Path, InputFile]) -> dict[Path, InputFile]:
    """Files without mode and time, as they are cached for copies."""
    return {path: content_only(input_file) for path, input_file in files.items()}


def content_only(input_file: InputFile) -> InputFile:
    return InputFile(input_file.kind, input_file.blob)


def files_key(
    files: Mapping[Path, InputFile], directories: Mapping[Path, FileAttributes] = {}
) -> str:
    lines = [
        f"{path.text}\0{file.kind}\0{file.blob.digest}\0{file.mode}\0{file.mtime_ns}"
        for path, file in sorted(files.items())
    ]
    lines += [
        f"{path.text}/\0{directory.mode}\0{directory.mtime_ns}"
        for path, directory in sorted(directories.items())
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def supported_files(
    files: Mapping[Path, InputFile],
    directories: Mapping[Path, FileAttributes],
    targets: Mapping[Digest, bytes],
) -> MaterializedFiles:
    """Return the files and directories a disk can hold, with notes on the rest."""
    supported: dict[Path, InputFile] = {}
    notes = []
    for path, input_file in files.items():
        if any(parent in files for parent in path.parents):
            notes.append(f"missing: {path}, its directory is a file")
        elif input_file.kind is FileKind.LINK and not _is_valid_target(
            targets[input_file.blob.digest]
        ):
            notes.append(f"missing: {path}, an invalid symlink target")
        else:
            supported[path] = input_file
    supported_directories = {
        path: attributes
        for path, attributes in directories.items()
        if path not in files and not any(parent in files for parent in path.parents)
    }
    return MaterializedFiles(supported, tuple(notes), directories=supported_directories)


def _is_valid_target(target: bytes) -> bool:
    return 0 < len(target) <= _MAX_TARGET_BYTES and b"\0" not in target
