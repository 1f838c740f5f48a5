"""Backup file format: writer and verifying reader.

A backup is a zip file: members can be written as streams of unknown length and read one by one,
and the directory stands at the end, so a truncated file is never mistaken for a complete one.
It holds ``manifest.json``, ``<table>.jsonl`` for each table (a row a line, as an array of its
columns; bytes in base64) and ``objects/<hex>`` for large blobs, named by their SHA-256. The zip
comment, at the end of the file, is the SHA-256 of everything before it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, Any, Final

import msgspec

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.tables import ADDED_COLUMNS, COLUMNS, OPTIONAL_TABLES, TABLES
from carrel.ports import CorruptContent

FORMAT: Final = "carrel-backup"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
OBJECTS: Final = "objects/"

_match_object_name: Final = re.compile("objects/[0-9a-f]{64}").fullmatch
_SEAL_LENGTH: Final = 64
_CHUNK_BYTES: Final = 2**20
_COMPRESSION_LEVEL: Final = 1
"""The lowest: higher levels cost several times more than they save."""

Rows = Sequence[Sequence[Any]]


class ArchiveTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    columns: tuple[str, ...]
    rows: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Contents and origin of a backup. It never holds the vault key."""

    format: str
    version: int
    carrel: str
    created: TimestampMs
    migrations: tuple[str, ...]
    vault_key: str | None
    """Fingerprint of the vault key that seals the secrets."""
    tables: dict[str, ArchiveTable]
    objects: int


class ArchiveWriter:
    """Writes a backup member by member; complete once `finish` returns."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(
            file, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL
        )
        self._zip.comment = b"0" * _SEAL_LENGTH
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
        header = (FORMAT, VERSION, carrel, created, migrations, vault_key)
        manifest = Manifest(*header, self._tables, self._objects)
        with self._member(MANIFEST) as member:
            member.write(msgspec.json.format(self._encoder.encode(manifest)))
        self._zip.close()
        seal, _ = _compute_seal(self._file)
        self._file.seek(-_SEAL_LENGTH, os.SEEK_END)
        self._file.write(seal)
        return manifest

    def close(self) -> None:
        """Close the file, complete or not."""
        with suppress(OSError):
            self._zip.close()

    def _member(self, name: str) -> IO[bytes]:
        return self._zip.open(name, "w", force_zip64=True)

    def _add_rows(self, member: IO[bytes], sha: hashlib._Hash, rows: Rows) -> None:
        lines = self._encoder.encode_lines([tuple(row) for row in rows])
        sha.update(lines)
        member.write(lines)


class ArchiveReader:
    """Reads a backup as a StoreSnapshot and verifies it against the manifest.

    A table read to its end is complete. Raises CorruptContent naming the damaged part, and
    ValidationError for a file that is not a supported backup.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        with _corrupt_if_unreadable("the file"):
            self._zip = zipfile.ZipFile(file)
        self.manifest = self._read_manifest()
        names = self._zip.namelist()
        expected_members = [MANIFEST, *(f"{table}.jsonl" for table in self.manifest.tables)]
        self.objects: Collection[Digest] = [
            Digest("sha256:" + name.removeprefix(OBJECTS))
            for name in names
            if _match_object_name(name)
        ]
        actual = (sorted(set(names) - set(map(_object_name, self.objects))), len(self.objects))
        if actual != (sorted(expected_members), self.manifest.objects):
            raise CorruptContent("the backup is damaged: its members differ from its manifest")

    async def count(self, table: str) -> int:
        entry = self.manifest.tables.get(table)
        return entry.rows if entry else 0

    async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Rows]:
        if table not in self.manifest.tables:
            return
        expected, count = self.manifest.tables[table], 0
        sha = hashlib.sha256()
        lines = self._iter_lines(f"{table}.jsonl", sha)
        added = _missing_values(table, expected.columns)
        decoder = _row_decoder(table, len(expected.columns))
        while text := await asyncio.to_thread(next, lines, b""):
            with _corrupt_if_unreadable(f"{table}.jsonl"):
                rows: Rows = await asyncio.to_thread(decoder.decode_lines, text)
            count += len(rows)
            yield [(*row, *added) for row in rows] if added else rows
        if (count, sha.hexdigest()) != (expected.rows, expected.sha256):
            raise CorruptContent(
                f"the backup is damaged: {table}.jsonl does not match its manifest"
            )

    async def read_object(self, digest: Digest) -> bytes | None:
        """Read a blob and verify its digest; None if it is not in the backup."""
        try:
            member = self._zip.getinfo(_object_name(digest))
        except KeyError:
            return None
        with _corrupt_if_unreadable(member.filename):
            content = await asyncio.to_thread(self._zip.read, member)
        if hashlib.sha256(content).hexdigest() != digest.removeprefix("sha256:"):
            raise CorruptContent(
                f"the backup is damaged: {member.filename} does not match its digest"
            )
        return content

    async def check(self) -> None:
        """Raise CorruptContent if any byte of the file differs from what was written."""
        expected, actual = await asyncio.to_thread(_compute_seal, self._file)
        if expected != actual:
            raise CorruptContent("the backup is damaged: its checksum does not match")

    def _read_manifest(self) -> Manifest:
        if MANIFEST not in self._zip.namelist():
            raise ValidationError("this is not a Carrel backup")
        with _corrupt_if_unreadable(MANIFEST):
            text = self._zip.read(MANIFEST)
        try:
            raw = msgspec.json.decode(text)
            is_supported = (raw["format"], raw["version"]) == (FORMAT, VERSION)
            manifest = msgspec.convert(raw, Manifest) if is_supported else None
        except (msgspec.MsgspecError, TypeError, KeyError):
            raise ValidationError("this is not a Carrel backup") from None
        if manifest is None or not _has_known_tables(manifest):
            raise ValidationError("this version of Carrel does not support the backup's format")
        return manifest

    def _iter_lines(self, name: str, sha: hashlib._Hash) -> Iterator[bytes]:
        """Yield complete lines in chunks of about _CHUNK_BYTES."""
        pending = b""
        with _corrupt_if_unreadable(name), self._zip.open(name) as member:
            while chunk := member.read(_CHUNK_BYTES):
                sha.update(chunk)
                head, newline, tail = chunk.rpartition(b"\n")
                if newline:
                    yield pending + head + newline
                    pending = tail
                else:
                    pending += chunk
        if pending:
            yield pending


def _has_known_tables(manifest: Manifest) -> bool:
    """Return whether the tables match ours; tables and columns added later may be absent."""
    columns = {
        name: (*table.columns, *list(ADDED_COLUMNS.get(name, ()))[-missing:])
        if (missing := len(_missing_values(name, table.columns)))
        else table.columns
        for name, table in manifest.tables.items()
    }
    absent = {name: TABLES[name] for name in OPTIONAL_TABLES if name not in columns}
    return {**columns, **absent} == TABLES


def _missing_values(table: str, columns: Sequence[str]) -> Sequence[Any]:
    """Values of the columns of a table that a backup lacks."""
    missing = len(TABLES.get(table, ())) - len(columns)
    return tuple(ADDED_COLUMNS.get(table, {}).values())[-missing:] if missing > 0 else ()


def _compute_seal(file: IO[bytes]) -> tuple[bytes, bytes]:
    """Return the expected and the actual checksum at the end of the file."""
    remaining = file.seek(0, os.SEEK_END) - _SEAL_LENGTH
    file.seek(0)
    sha = hashlib.sha256()
    while chunk := file.read(max(0, min(remaining, _CHUNK_BYTES))):
        sha.update(chunk)
        remaining -= len(chunk)
    return sha.hexdigest().encode(), file.read(_SEAL_LENGTH)


def _object_name(digest: Digest) -> str:
    return OBJECTS + digest.removeprefix("sha256:")


@contextmanager
def _corrupt_if_unreadable(name: str) -> Iterator[None]:
    """Raise CorruptContent, naming the part, for any error of reading a broken zip."""
    try:
        yield
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error, msgspec.MsgspecError),
        *(EOFError, OSError, OverflowError, RuntimeError, ValueError),
    ) as problem:
        raise CorruptContent(f"the backup is damaged: {name} cannot be read") from problem


@cache
def _row_decoder(table: str, columns: int) -> msgspec.json.Decoder[Any]:
    """Decoder of rows with the first columns of a table."""
    types = tuple(COLUMNS[table].values())[:columns]
    return msgspec.json.Decoder(tuple[types])  # type: ignore[valid-type]  # built at run time
