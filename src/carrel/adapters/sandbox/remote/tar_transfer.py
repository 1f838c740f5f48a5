"""Packs files as a tar for a remote machine and reads the tar it sends back."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Collection, Mapping
from io import BytesIO
from typing import IO, Final

from msgspec import Struct

from carrel.adapters.sandbox.remote.scripts import (
    HOME_DIRECTORY,
    REQUESTED_FILES,
    TEMPORARY_DIRECTORY,
    WORK_DIRECTORY,
)
from carrel.core.identifiers import Digest, Path
from carrel.core.store.entry import FileAttributes
from carrel.ports.sandbox import FileKind, InputFile

_MEMBER_OVERHEAD_BYTES: Final = 8 * 1024
"""Maximum bytes per tar member besides its content: header, long name, padding."""
_TRAILER_BYTES: Final = 64 * 1024
_CHUNK_BYTES: Final = 2**20


class Owner(Struct, frozen=True):
    user: int = 0
    group: int = 0


def pack_tar(
    files: Mapping[Path, InputFile],
    contents: Mapping[Digest, bytes],
    scripts: Mapping[str, bytes],
    owner: Owner = Owner(),
    directories: Mapping[Path, FileAttributes] = {},
) -> bytes:
    """Return a tar of the root: the command's directory, its files and scripts."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, script in scripts.items():
            _add(tar, name, script, 0o555, owner)
        for name in (WORK_DIRECTORY, HOME_DIRECTORY, TEMPORARY_DIRECTORY):
            _add_directory(tar, name, owner)
        parents = {parent for path in (*files, *directories) for parent in path.parents}
        for directory in sorted(parents | directories.keys()):
            _add_directory(tar, f"{WORK_DIRECTORY}/{directory}", owner)
        for path, input_file in sorted(files.items()):
            content = contents[input_file.blob.digest]
            _add_input_file(tar, f"{WORK_DIRECTORY}/{path}", input_file, content, owner)
    return buffer.getvalue()


class ExpectedFile(Struct, frozen=True):
    """A changed file as the manifest announced it."""

    name: bytes
    size: int
    hexadecimal: str


def pack_file_list(files: Collection[ExpectedFile], owner: Owner = Owner()) -> bytes:
    """Return a tar with one file that lists the files to send."""
    buffer = BytesIO()
    # Valid paths have no newline or backslash; "./" keeps tar from reading one as an option.
    lines = b"".join(b"./%b\n" % file.name for file in files)
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, REQUESTED_FILES, lines, 0o444, owner)
    return buffer.getvalue()


def _tar_info(name: str, mode: int, owner: Owner) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid = mode, owner.user, owner.group
    return info


def _add(
    tar: tarfile.TarFile, name: str, content: bytes, mode: int, owner: Owner, mtime: float = 0
) -> None:
    info = _tar_info(name, mode, owner)
    info.mtime = mtime
    info.size = len(content)
    tar.addfile(info, BytesIO(content))


def _add_directory(tar: tarfile.TarFile, name: str, owner: Owner) -> None:
    info = _tar_info(name, 0o755, owner)
    info.type = tarfile.DIRTYPE
    tar.addfile(info)


def _add_input_file(
    tar: tarfile.TarFile, name: str, input_file: InputFile, content: bytes, owner: Owner
) -> None:
    if input_file.kind is not FileKind.LINK:
        mtime = max(0, input_file.mtime_ns or 0) // 10**9
        _add(tar, name, content, input_file.permissions, owner, mtime)
        return
    info = _tar_info(name, 0o777, owner)
    info.type, info.linkname = tarfile.SYMTYPE, content.decode("utf-8", "surrogateescape")
    tar.addfile(info)


class TransferDamaged(Exception):
    """The received archive is not what was requested."""


def max_archive_bytes(files: Collection[ExpectedFile]) -> int:
    """Upper bound of the size of a tar of these files."""
    return sum(file.size for file in files) + _MEMBER_OVERHEAD_BYTES * len(files) + _TRAILER_BYTES


def unpack_tar(file: IO[bytes], expected: Mapping[Path, ExpectedFile]) -> dict[Path, int]:
    """Return the offset of each expected file in the tar, with digests checked.

    Other members are ignored and nothing is extracted. Raises TransferDamaged.
    """
    offsets: dict[Path, int] = {}
    by_name = {
        file_info.name.decode("utf-8", "surrogateescape"): path
        for path, file_info in expected.items()
    }
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                path = by_name.get(member.name.removeprefix("./"))
                if path is not None and member.isreg() and member.size == expected[path].size:
                    offsets[path] = member.offset_data
    except (tarfile.TarError, ValueError, OSError) as problem:
        raise TransferDamaged("the response is not a tar archive") from problem
    for path, file_info in expected.items():
        if (
            path not in offsets
            or _hash_range(file, offsets[path], file_info.size) != file_info.hexadecimal
        ):
            raise TransferDamaged(f"{path} changed while it was read")
    return offsets


def _hash_range(file: IO[bytes], start: int, size: int) -> str:
    file.seek(start)
    state, remaining = hashlib.sha256(), size
    while remaining and (part := file.read(min(remaining, _CHUNK_BYTES))):
        state.update(part)
        remaining -= len(part)
    return state.hexdigest() if not remaining else ""
