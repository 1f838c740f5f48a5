"""One file that holds a whole store: how it is written, and how it is read with every byte checked.

It is a zip: members can be written as a stream of unknown length and read each on its own, and its
directory stands at the end, so that a file which was cut short cannot be mistaken for a whole one.
Inside are ``manifest.json``, ``<table>.jsonl`` for each table (a row a line, as an array of its
columns; bytes in base64) and ``objects/<hex>`` for large bytes, each named by its own SHA-256. The
zip's comment, which is the end of the file, is the SHA-256 of all that stands before it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Final

import msgspec

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.tables import COLUMNS, LATER, TABLES
from carrel.ports import CorruptContent

FORMAT: Final = "carrel-backup"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
OBJECTS: Final = "objects/"

_OBJECT: Final = re.compile("objects/[0-9a-f]{64}").fullmatch
_SEAL: Final = 64
_CHUNK: Final = 2**20
_LEVEL: Final = 1
"""Of compression: the lowest, since a higher one costs several times more than it saves."""

Rows = Sequence[Sequence[Any]]


class ArchiveTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    columns: tuple[str, ...]
    rows: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is in the file, and where it comes from. The key of the vault is never in it."""

    format: str
    version: int
    carrel: str
    created: TimestampMs
    migrations: tuple[str, ...]
    vault_key: str | None
    """Tells by which key secrets are sealed, and nothing else about it."""
    tables: dict[str, ArchiveTable]
    objects: int


class ArchiveWriter:
    """An archive being written, member by member; whole once ``finish`` has been called."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._zip.comment = b"0" * _SEAL
        self._encoder = msgspec.json.Encoder()
        self._tables: dict[str, ArchiveTable] = {}
        self._objects = 0

    async def add_table(self, table: str, batches: AsyncIterator[Rows]) -> None:
        count, sha = 0, hashlib.sha256()
        with self._member(f"{table}.jsonl") as member:
            async for rows in batches:
                await asyncio.to_thread(self._add_rows, member, sha, rows)
                count += len(rows)
        self._tables[table] = ArchiveTable(TABLES[table], count, sha.hexdigest())

    async def add_object(self, digest: Digest, content: bytes) -> None:
        with self._member(_object_name(digest)) as member:
            await asyncio.to_thread(member.write, content)
        self._objects += 1

    def finish(
        self, carrel: str, created: TimestampMs, migrations: tuple[str, ...], vault_key: str | None
    ) -> Manifest:
        about = (FORMAT, VERSION, carrel, created, migrations, vault_key)
        manifest = Manifest(*about, self._tables, self._objects)
        with self._member(MANIFEST) as member:
            member.write(msgspec.json.format(self._encoder.encode(manifest)))
        self._zip.close()
        seal, _ = _sealed(self._file)
        self._file.seek(-_SEAL, os.SEEK_END)
        self._file.write(seal)
        return manifest

    def close(self) -> None:
        """Let go of the file, whole or not."""
        with suppress(OSError):
            self._zip.close()

    def _member(self, name: str) -> IO[bytes]:
        return self._zip.open(name, "w", force_zip64=True)

    def _add_rows(self, member: IO[bytes], sha: hashlib._Hash, rows: Rows) -> None:
        lines = self._encoder.encode_lines([tuple(row) for row in rows])
        sha.update(lines)
        member.write(lines)


class ArchiveReader:
    """An archive being read. It is a Frozen: the store as it was when the archive was made.

    Nothing is handed over that is not what the manifest says; whoever reads a table to its end
    knows that it was whole. Raises Corrupt, which names what is damaged, and Malformed for a file
    that is no archive of this form.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        with _named("the file"):
            self._zip = zipfile.ZipFile(file)
        self.manifest = self._read_manifest()
        names = self._zip.namelist()
        wanted = [MANIFEST, *(f"{table}.jsonl" for table in self.manifest.tables)]
        self.objects: Collection[Digest] = [
            Digest("sha256:" + name.removeprefix(OBJECTS)) for name in names if _OBJECT(name)
        ]
        found = (sorted(set(names) - set(map(_object_name, self.objects))), len(self.objects))
        if found != (sorted(wanted), self.manifest.objects):
            raise CorruptContent("the backup is damaged: it does not hold what its manifest lists")

    async def count(self, table: str) -> int:
        known = self.manifest.tables.get(table)
        return known.rows if known else 0

    async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Rows]:
        if table not in self.manifest.tables:
            return
        expected, count = self.manifest.tables[table], 0
        sha = hashlib.sha256()
        lines = self._lines(f"{table}.jsonl", sha)
        decoder = _DECODERS[table]
        while text := await asyncio.to_thread(next, lines, b""):
            with _named(f"{table}.jsonl"):
                rows: Rows = await asyncio.to_thread(decoder.decode_lines, text)
            count += len(rows)
            yield rows
        if (count, sha.hexdigest()) != (expected.rows, expected.sha256):
            raise CorruptContent(
                f"the backup is damaged: {table}.jsonl is not what its manifest says"
            )

    async def object(self, digest: Digest) -> bytes | None:
        """The bytes of this digest, checked; None where there are none."""
        try:
            found = self._zip.getinfo(_object_name(digest))
        except KeyError:
            return None
        with _named(found.filename):
            content = await asyncio.to_thread(self._zip.read, found)
        if hashlib.sha256(content).hexdigest() != digest.removeprefix("sha256:"):
            raise CorruptContent(
                f"the backup is damaged: {found.filename} is not what its name says"
            )
        return content

    async def check(self) -> None:
        """Raise Corrupt if a single byte is not as it was written, whether it matters or not."""
        should, found = await asyncio.to_thread(_sealed, self._file)
        if should != found:
            raise CorruptContent("the backup is damaged: its bytes are not those that were written")

    def _read_manifest(self) -> Manifest:
        if MANIFEST not in self._zip.namelist():
            raise ValidationError("this is not a backup of Carrel")
        with _named(MANIFEST):
            text = self._zip.read(MANIFEST)
        try:
            said = msgspec.json.decode(text)
            known = (said["format"], said["version"]) == (FORMAT, VERSION)
            manifest = msgspec.convert(said, Manifest) if known else None
        except (msgspec.MsgspecError, TypeError, KeyError):
            raise ValidationError("this is not a backup of Carrel") from None
        if manifest is None or not _known(manifest):
            raise ValidationError("the backup has a form that this version of Carrel does not know")
        return manifest

    def _lines(self, name: str, sha: hashlib._Hash) -> Iterator[bytes]:
        """Whole lines, as many at a time as make up about a chunk."""
        rest = b""
        with _named(name), self._zip.open(name) as member:
            while chunk := member.read(_CHUNK):
                sha.update(chunk)
                head, newline, tail = chunk.rpartition(b"\n")
                if newline:
                    yield rest + head + newline
                    rest = tail
                else:
                    rest += chunk
        if rest:
            yield rest


def _known(manifest: Manifest) -> bool:
    """Whether it has the tables that we know, but perhaps for those that came later."""
    columns = {name: table.columns for name, table in manifest.tables.items()}
    absent = {name: TABLES[name] for name in LATER if name not in columns}
    return {**columns, **absent} == TABLES


def _sealed(file: IO[bytes]) -> tuple[bytes, bytes]:
    """What should stand at the end of the file, and what does."""
    left = file.seek(0, os.SEEK_END) - _SEAL
    file.seek(0)
    sha = hashlib.sha256()
    while chunk := file.read(max(0, min(left, _CHUNK))):
        sha.update(chunk)
        left -= len(chunk)
    return sha.hexdigest().encode(), file.read(_SEAL)


def _object_name(digest: Digest) -> str:
    return OBJECTS + digest.removeprefix("sha256:")


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Whatever a broken zip makes of itself is told as what it is, with the name of the part."""
    try:
        yield
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error, msgspec.MsgspecError),
        *(EOFError, OSError, OverflowError, RuntimeError, ValueError),
    ) as problem:
        raise CorruptContent(f"the backup is damaged: {name} cannot be read") from problem


_DECODERS: Final[Mapping[str, msgspec.json.Decoder[Any]]] = {
    table: msgspec.json.Decoder(tuple[tuple(columns.values())])  # type: ignore[misc]  # made here
    for table, columns in COLUMNS.items()
}
