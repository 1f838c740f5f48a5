"""Changes of a dry run, and their sealed form that a client carries between requests."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, Path, Scope
from carrel.core.store.entry import Head
from carrel.core.store.record import UNAUDITED_TYPES, Record, RecordType
from carrel.ports import CorruptContent
from carrel.ports.vault import Vault

RecordKey: TypeAlias = tuple[str, RecordType, str]
Collection: TypeAlias = tuple[str, RecordType]
_COMPRESSION_LEVEL: Final = 1


class PendingRecord(Struct, frozen=True):
    """A record as the dry run leaves it, with its keys."""

    record: Record | None
    """None if deleted."""
    unique_keys: tuple[str, ...] = ()
    index_keys: tuple[str, ...] = ()


class PendingChanges(Struct, kw_only=True):
    """What the commits of a dry run have changed so far."""

    heads: dict[Scope, dict[Path, Head]] = {}
    revisions: dict[Scope, int] = {}
    """Number of commits to each scope."""
    records: dict[RecordKey, PendingRecord] = {}
    collections: dict[Collection, int] = {}
    """Number of commits to each record collection."""
    contents: dict[Digest, bytes] = {}
    """Contents of this request; later ones do not have them."""

    def heads_of(self, scope: Scope) -> Mapping[Path, Head]:
        return self.heads.get(scope, {})

    @property
    def record_commits(self) -> int:
        """Number of commits that increase the records revision, at most."""
        return sum(
            count for (_, type), count in self.collections.items() if type not in UNAUDITED_TYPES
        )

    def is_without_content(self, digest: Digest) -> bool:
        """Whether an earlier request wrote this content, which is no longer there."""
        if digest in self.contents:
            return False
        return any(
            head.entry is not None and head.entry.blob.digest == digest
            for heads in self.heads.values()
            for head in heads.values()
        )


class _SealedChanges(Struct, array_like=True):
    """Pending changes as lists: keys of encoded objects are texts only."""

    heads: list[tuple[Scope, list[Head], int]]
    records: list[tuple[RecordKey, PendingRecord]]
    collections: list[tuple[Collection, int]]


def seal_changes(vault: Vault, actor: Actor, changes: PendingChanges) -> str:
    """Encrypt the changes for the next request of the same caller."""
    sealed = _SealedChanges(
        [
            (scope, list(heads.values()), changes.revisions[scope])
            for scope, heads in changes.heads.items()
        ],
        list(changes.records.items()),
        list(changes.collections.items()),
    )
    packed = zlib.compress(msgspec.msgpack.encode(sealed), _COMPRESSION_LEVEL)
    return vault.seal(packed, _context(actor))


def open_changes(vault: Vault, actor: Actor, state: str) -> PendingChanges:
    """Decrypt the state of an earlier request; empty text: none. Raises ValidationError."""
    if not state:
        return PendingChanges()
    try:
        packed = vault.open(state, _context(actor))
    except CorruptContent:
        raise ValidationError("state is not one that this caller received") from None
    sealed = msgspec.msgpack.decode(zlib.decompress(packed), type=_SealedChanges)
    return PendingChanges(
        heads={scope: _by_path(heads) for scope, heads, _ in sealed.heads},
        revisions={scope: revision for scope, _, revision in sealed.heads},
        records=dict(sealed.records),
        collections=dict(sealed.collections),
    )


def _by_path(heads: Iterable[Head]) -> dict[Path, Head]:
    return {head.path: head for head in heads}


def _context(actor: Actor) -> str:
    """Context of the caller's rights, since changes that needed them can open private agents."""
    permissions = " ".join(sorted(actor.permissions))
    return f"dry run of {actor.name} in {actor.tenant} as {actor.role} with {permissions}"
