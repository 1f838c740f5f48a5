"""Conversions between SQLite rows and core values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import DecodeError
from msgspec.json import decode

from carrel.adapters.sqlite.damage import undecodable_row
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
_RECORD_TYPES: Final = {record_type.value: record_type for record_type in RecordType}
AFTER_ANY_PATH = "\U0010ffff" * 257
"""Sorts after any path suffix, since it is longer than a path may be."""


RECORDS_REVISION_KEY: Final = "records"
"""Reader cache key of the revision of all records."""


HeadKey = tuple[Scope, Path]
"""Cache key of a head."""


def blob_from_row(id: int, digest: bytes, size: int) -> Blob:
    return Blob(Digest("sha256:" + digest.hex()), size, id)


def digest_bytes(digest: Digest) -> bytes:
    return bytes.fromhex(digest[7:])


def head_from_row(row: Row) -> Head:
    """From path, version, revision, at, content, digest, size, type and eight more columns.

    These are base, base digest, base size, version offset, mode, modification time, file id and
    the reviewed offer.
    """
    path, version, revision, at, content, digest, size, media_type = row[:8]
    base, base_digest, base_size, offset, mode, mtime_ns, file_id, reviewed = row[8:]
    if content is None:
        directory = FileAttributes(mode, mtime_ns) if media_type == DIRECTORY_TYPE else None
        return Head(Path(path), version, revision, at, None, offset, directory, None, reviewed)
    base_blob = None if base is None else blob_from_row(base, base_digest, base_size)
    attributes = None if mode is mtime_ns is None else FileAttributes(mode, mtime_ns)
    blob = blob_from_row(content, digest, size)
    entry = Entry(blob, base_blob, media_type or MARKDOWN, attributes)
    return Head(Path(path), version, revision, at, entry, offset, None, file_id, reviewed)


def version_from_row(row: Row) -> Version:
    author, reason, run, redacted, source = row[16:21]
    head = head_from_row(row[:16])
    return Version(head, author, reason, run, bool(redacted), source_from_text(source))


def record_from_row(row: Row) -> Record:
    tenant, record_type, id, revision, body, created_at, updated_at = row
    try:
        fields = decode(body)
    except DecodeError as error:
        raise undecodable_row("record", f"{record_type}/{id}") from error
    return Record(tenant, _RECORD_TYPES[record_type], id, revision, fields, created_at, updated_at)


def scope_from_row(tenant: str, kind: str, name: str) -> Scope:
    return Scope(tenant, ScopeKind(kind), name)


def scopes_to_json(scopes: Iterable[Scope]) -> str:
    return json.dumps([[scope.tenant, scope.kind, scope.name] for scope in scopes])
