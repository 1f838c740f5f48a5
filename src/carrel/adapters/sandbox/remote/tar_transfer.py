"""Files as a tar that goes to a machine elsewhere, and as one that comes back from it."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Collection, Mapping
from io import BytesIO
from typing import IO, Final

from msgspec import Struct

from carrel.adapters.sandbox.remote.scripts import HOME, TEMPORARY, WANTED, WORK
from carrel.core.identifiers import Digest, Path
from carrel.ports.sandbox import FileKind, InputFile

_PER_MEMBER: Final = 8 * 1024
"""What a tar may need for one file beside its bytes: its head, a long name, what fills a block."""
_AT_THE_END: Final = 64 * 1024
_CHUNK: Final = 2**20


class Owner(Struct, frozen=True):
    user: int = 0
    group: int = 0


def pack_tar(
    files: Mapping[Path, InputFile],
    contents: Mapping[Digest, bytes],
    scripts: Mapping[str, bytes],
    owner: Owner = Owner(),
) -> bytes:
    """A tar of the root: the command's directory with its files, and the scripts beside it."""
    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, script in scripts.items():
            _add(tar, name, script, 0o555, owner)
        for name in (WORK, HOME, TEMPORARY):
            _add_directory(tar, name, owner)
        for directory in sorted({parent for path in files for parent in path.parents}):
            _add_directory(tar, f"{WORK}/{directory}", owner)
        for path, placed in sorted(files.items()):
            content = contents[placed.blob.digest]
            _add_placed(tar, f"{WORK}/{path}", placed.form, content, owner)
    return whole.getvalue()


class Expected(Struct, frozen=True):
    """A file as it shall come back."""

    name: bytes
    size: int
    hexadecimal: str


def wanted(files: Collection[Expected], owner: Owner = Owner()) -> bytes:
    """A tar with one file, which says line by line what shall be sent."""
    whole = BytesIO()
    # What can be a path has no line end and no backslash; with ./ none is taken for an option.
    lines = b"".join(b"./%b\n" % file.name for file in files)
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, WANTED, lines, 0o444, owner)
    return whole.getvalue()


def _head(name: str, mode: int, owner: Owner) -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.mode, head.uid, head.gid = mode, owner.user, owner.group
    return head


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int, owner: Owner) -> None:
    head = _head(name, mode, owner)
    head.size = len(content)
    tar.addfile(head, BytesIO(content))


def _add_directory(tar: tarfile.TarFile, name: str, owner: Owner) -> None:
    head = _head(name, 0o755, owner)
    head.type = tarfile.DIRTYPE
    tar.addfile(head)


def _add_placed(
    tar: tarfile.TarFile, name: str, form: FileKind, content: bytes, owner: Owner
) -> None:
    if form is not FileKind.LINK:
        _add(tar, name, content, 0o755 if form is FileKind.EXECUTABLE else 0o644, owner)
        return
    head = _head(name, 0o777, owner)
    head.type, head.linkname = tarfile.SYMTYPE, content.decode("utf-8", "surrogateescape")
    tar.addfile(head)


class TransferDamaged(Exception):
    """What came back is not what was asked for."""


def most_bytes(files: Collection[Expected]) -> int:
    """How long a tar of these files can be."""
    return sum(file.size for file in files) + _PER_MEMBER * len(files) + _AT_THE_END


def unpack_tar(file: IO[bytes], expected: Mapping[Path, Expected]) -> dict[Path, int]:
    """Where each file's bytes begin in a tar: all that were asked for, whole.

    What else is there is passed over, and nothing is ever written to a path that a tar names.
    Raises Damaged.
    """
    places: dict[Path, int] = {}
    named = {one.name.decode("utf-8", "surrogateescape"): path for path, one in expected.items()}
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                path = named.get(member.name.removeprefix("./"))
                if path is not None and member.isreg() and member.size == expected[path].size:
                    places[path] = member.offset_data
    except (tarfile.TarError, ValueError, OSError) as problem:
        raise TransferDamaged("what came back is no archive") from problem
    for path, one in expected.items():
        if path not in places or _hashed(file, places[path], one.size) != one.hexadecimal:
            raise TransferDamaged(f"{path} is not what was there a moment before")
    return places


def _hashed(file: IO[bytes], start: int, size: int) -> str:
    file.seek(start)
    state, left = hashlib.sha256(), size
    while left and (part := file.read(min(left, _CHUNK))):
        state.update(part)
        left -= len(part)
    return state.hexdigest() if not left else ""
