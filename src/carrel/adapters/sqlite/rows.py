"""Rows of SQLite as values of the core, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.json import decode

from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import MARKDOWN, Blob, Entry, Head, Version

Row = Sequence[Any]
_NOUNS: Final = {noun.value: noun for noun in RecordType}
AFTER_ANY = "\U0010ffff" * 257
"""Sorts after the rest of any path: no path has room for as many of these."""


RECORDS: Final = "records"
"""Under which the reader remembers the revision of all records."""


Key = tuple[Scope, Path]
"""Under which is remembered what one scope says of one path."""


def blob_of(id: int, digest: bytes, size: int) -> Blob:
    return Blob(Digest("sha256:" + digest.hex()), size, id)


def digest_bytes(digest: Digest) -> bytes:
    return bytes.fromhex(digest[7:])


def head_of(row: Row) -> Head:
    """From path, version, revision, at, content, digest, size, type, base, its digest and size."""
    path, version, revision, at, content, digest, size, kind, base, base_digest, base_size = row
    entry = None
    if content is not None:
        beneath = None if base is None else blob_of(base, base_digest, base_size)
        entry = Entry(blob_of(content, digest, size), beneath, kind or MARKDOWN)
    return Head(Path(path), version, revision, at, entry)


def version_of(row: Row) -> Version:
    return Version(head_of(row[:11]), row[11], row[12], row[13])


def record_of(row: Row) -> Record:
    tenant, record_type, id, revision, body, created, changed = row
    return Record(tenant, _NOUNS[record_type], id, revision, decode(body), created, changed)


def scope_of(tenant: str, kind: str, name: str) -> Scope:
    return Scope(tenant, ScopeKind(kind), name)


def names(scopes: Iterable[Scope]) -> str:
    return json.dumps([[scope.tenant, scope.kind, scope.name] for scope in scopes])
