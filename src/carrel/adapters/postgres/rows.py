"""Rows of PostgreSQL as values of the core, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import MARKDOWN, Blob, Entry, Head, Version

Row = Sequence[Any]

KIND: Final = {kind.value: kind for kind in ScopeKind}
_DECODE: Final = msgspec.json.Decoder().decode
_ENCODE: Final = msgspec.json.Encoder().encode


def to_json(value: Any) -> str:
    return _ENCODE(value).decode()


def from_json(text: str) -> Any:
    return _DECODE(text)


def blob_of(id: int, digest: bytes, size: int) -> Blob:
    return Blob(Digest("sha256:" + digest.hex()), size, id)


def digest_bytes(digest: Digest) -> bytes:
    return bytes.fromhex(digest[7:])


def head_of(path: Path, row: Row, at: int) -> Head:
    """From version, revision, at, content, digest, size, type, base, its digest and its size,
    which begin at a place of the row."""
    content = row[at + 3]
    entry = None
    if content is not None:
        base = row[at + 7]
        beneath = None if base is None else blob_of(base, row[at + 8], row[at + 9])
        blob = blob_of(content, row[at + 4], row[at + 5])
        entry = Entry(blob, beneath, row[at + 6] or MARKDOWN)
    return Head(path, row[at], row[at + 1], row[at + 2], entry)


def version_of(path: Path, row: Row, at: int) -> Version:
    """From a head's columns, by, why and run."""
    return Version(head_of(path, row, at), row[at + 10], row[at + 11], row[at + 12])


def record_of(row: Row, at: int = 0) -> Record:
    tenant, record_type, id, revision, body, created, changed = row[at : at + 7]
    return Record(tenant, RecordType(record_type), id, revision, from_json(body), created, changed)


def scope_of(tenant: str, kind: str, name: str) -> Scope:
    return Scope(tenant, KIND[kind], name)


def numbers(rows: Sequence[Row], count: int) -> list[str]:
    """Columns of numbers, truths and NULLs as PostgreSQL writes arrays: sent as texts, since the
    driver looks at every element of a list, and that takes longer than all the rest."""
    return ["{" + to_json(column)[1:-1] + "}" for column in columns(rows, count)]


def columns(rows: Sequence[Row], count: int) -> list[Row]:
    """Rows turned round: one array a column."""
    return list(zip(*rows, strict=True)) if rows else [()] * count
