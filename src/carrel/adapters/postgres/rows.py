"""Conversions between PostgreSQL rows and core values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.store.blob import Blob
from carrel.core.store.entry import (
    DIRECTORY_TYPE,
    MARKDOWN,
    Entry,
    FileAttributes,
    Head,
    Version,
    source_from_text,
)
from carrel.core.store.record import Record, RecordType

Row = Sequence[Any]

SCOPE_KINDS: Final = {kind.value: kind for kind in ScopeKind}
_DECODE: Final = msgspec.json.Decoder().decode
_ENCODE: Final = msgspec.json.Encoder().encode


def to_json(value: Any) -> str:
    return _ENCODE(value).decode()


def from_json(text: str) -> Any:
    return _DECODE(text)


def blob_from_row(id: int, digest: bytes, size: int) -> Blob:
    return Blob(Digest("sha256:" + digest.hex()), size, id)


def digest_bytes(digest: Digest) -> bytes:
    return bytes.fromhex(digest[7:])


def head_from_row(path: Path, row: Row, start: int) -> Head:
    """Build a head from fifteen columns of the row, starting at `start`.

    version, revision, at, content, digest, size, type, base, base digest, base size, offset, mode,
    modification time, file id, reviewed offer.
    """
    version, revision, at, content, digest, size, media_type, *rest = row[start : start + 15]
    base, base_digest, base_size, offset, mode, mtime_ns, file_id, reviewed = rest
    if content is None:
        directory = FileAttributes(mode, mtime_ns) if media_type == DIRECTORY_TYPE else None
        return Head(path, version, revision, at, None, offset, directory, None, reviewed)
    base_blob = None if base is None else blob_from_row(base, base_digest, base_size)
    attributes = None if mode is mtime_ns is None else FileAttributes(mode, mtime_ns)
    blob = blob_from_row(content, digest, size)
    entry = Entry(blob, base_blob, media_type or MARKDOWN, attributes)
    return Head(path, version, revision, at, entry, offset, None, file_id, reviewed)


def version_from_row(path: Path, row: Row, start: int) -> Version:
    """From a head's columns, author, reason, run, redacted and source."""
    author, reason, run, redacted, source = row[start + 15 : start + 20]
    head = head_from_row(path, row, start)
    return Version(head, author, reason, run, bool(redacted), source_from_text(source))


def record_from_row(row: Row, start: int = 0) -> Record:
    tenant, record_type, id, revision, body, created_at, updated_at = row[start : start + 7]
    return Record(
        tenant, RecordType(record_type), id, revision, from_json(body), created_at, updated_at
    )


def scope_from_row(tenant: str, kind: str, name: str) -> Scope:
    return Scope(tenant, SCOPE_KINDS[kind], name)


def numeric_columns(rows: Sequence[Row], count: int) -> list[str]:
    """Columns of numbers, booleans and NULLs as array literals.

    Sent as text, since the driver inspects every element of a list, which is slow.
    """
    return ["{" + to_json(column)[1:-1] + "}" for column in transpose(rows, count)]


def transpose(rows: Sequence[Row], count: int) -> list[Row]:
    """Return one array per column."""
    return list(zip(*rows, strict=True)) if rows else [()] * count


def scope_columns(scopes: Sequence[Scope]) -> list[Row]:
    """Tenants, kinds and names of scopes."""
    return transpose([(scope.tenant, scope.kind, scope.name) for scope in scopes], 3)
