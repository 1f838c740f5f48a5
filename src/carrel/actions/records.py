"""Record changes: lookups, pages and commits."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Generic, TypeVar

from msgspec import Struct

from carrel.core.access import Actor, author_and_key
from carrel.core.errors import Busy, Conflict, NotFound, Refusal, ValidationError
from carrel.core.identifiers import TimestampMs, parse_identifier
from carrel.core.overlay.planned_writes import path_occupied_error
from carrel.core.store.commit import (
    Applied,
    Commit,
    Expect,
    ExpectationFailed,
    ExpectPathFree,
    ExpectPathsUnchanged,
    Outcome,
    PathOccupied,
    Write,
)
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import (
    EVERY_RECORD,
    CollectionRevision,
    Record,
    RecordChange,
    RecordFilter,
    RecordType,
    unique_key,
)
from carrel.ports import Ports

_BATCH_SIZE: Final = 100
_ID_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
ID_PREFIXES: Final[Mapping[RecordType, str]] = {
    RecordType.PERSON: "per",
    RecordType.KEY: "key",
    RecordType.WEBHOOK: "whk",
    RecordType.TEMPLATE: "tpl",
    RecordType.AGENT: "agt",
    RecordType.SANDBOX: "sb",
    RecordType.WORKSPACE: "ws",
    RecordType.APPROVAL: "apr",
}
"""Prefixes of the ids that `ports.clock.new_id` creates."""

Item = TypeVar("Item")


class FileDrafts(Struct, frozen=True):
    """Files to write together with record changes, and the expectations they rest on."""

    writes: tuple[Write, ...] = ()
    expects: tuple[Expect, ...] = ()
    path_checks: tuple[ExpectPathFree, ...] = ()
    unchanged_paths: ExpectPathsUnchanged | None = None

    def __add__(self, other: FileDrafts) -> FileDrafts:
        return FileDrafts(
            self.writes + other.writes,
            self.expects + other.expects,
            self.path_checks + other.path_checks,
            self.unchanged_paths or other.unchanged_paths,
        )


NO_DRAFTS: Final = FileDrafts()


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: tuple[Item, ...]
    next: str | None
    """Cursor of the next page; None on the last page."""
    total: int | None = None
    """Number of items on all pages; only on a first page, and None if it is not known."""


async def get_record(ports: Ports, tenant: str, record_type: RecordType, id: str) -> Record:
    """Get a record by id. Raises NotFound, also for a malformed id."""
    [record] = await ports.records.get(tenant, record_type, [_require_valid_id(record_type, id)])
    if record is None:
        raise NotFound(f"no such {record_type}: {id}")
    return record


async def get_by_id_or_slug(
    ports: Ports, tenant: str, record_type: RecordType, name: str
) -> Record:
    """Get a record by id or slug; ids contain a `_`, slugs never do. Raises NotFound."""
    _require_valid_id(record_type, name)
    if "_" in name:
        [record] = await ports.records.get(tenant, record_type, [name])
    else:
        [record] = await ports.records.get_by_unique_key(
            [unique_key(tenant, record_type, "slug", name)]
        )
    if record is None:
        raise NotFound(f"no such {record_type}: {name}")
    return record


def _require_valid_id(record_type: RecordType, id: str) -> str:
    try:
        return parse_identifier(id)
    except ValidationError:
        raise NotFound(f"no such {record_type}") from None


def validate_cursor(cursor: str, prefix: str | None) -> str:
    """Return the cursor if it can be a record id; the record may be deleted since.

    Without a prefix, any valid id is accepted. Raises ValidationError.
    """
    pattern = _ID_PATTERN if prefix is None else rf"{prefix}_[0-9a-f]{{24}}"
    if cursor and not re.fullmatch(pattern, cursor):
        raise ValidationError("invalid cursor")
    return cursor


async def list_page(
    ports: Ports,
    tenant: str,
    record_type: RecordType,
    *,
    matching: RecordFilter = EVERY_RECORD,
    cursor: str = "",
    limit: int = 100,
) -> Page[Record]:
    """List records by id that meet every condition; the first page has their number."""
    after = validate_cursor(cursor, ID_PREFIXES.get(record_type))
    records = await ports.records.list_matching(
        tenant, record_type, matching, after=after, limit=limit + 1
    )
    has_more = len(records) > limit
    total: int | None = None
    if not cursor:
        total = len(records)
        if has_more:
            total = await ports.records.count_matching(tenant, record_type, matching)
    return Page(records[:limit], records[limit - 1].id if has_more else None, total)


async def iter_records(
    ports: Ports, tenant: str, record_type: RecordType, index_key: str = ""
) -> AsyncIterator[Record]:
    """Iterate over all records of a type, optionally of one index key."""
    after = ""
    while records := await ports.records.list(
        tenant, record_type, index_key=index_key, after=after, limit=500
    ):
        for record in records:
            yield record
        after = records[-1].id


async def load_collection_revision(
    ports: Ports, tenant: str, record_type: RecordType
) -> CollectionRevision:
    """Load the revision of a record collection, to be expected by a commit.

    Load it before reading the records: the commit then fails if any of them changed since.
    """
    [revision] = await load_collection_revisions(ports, tenant, (record_type,))
    return revision


async def load_collection_revisions(
    ports: Ports, tenant: str, record_types: Iterable[RecordType]
) -> list[CollectionRevision]:
    """Load the revisions of several record collections."""
    types = tuple(record_types)
    revisions = await ports.records.collection_revisions(
        [(tenant, record_type) for record_type in types]
    )
    return [
        CollectionRevision(tenant, record_type, revision)
        for record_type, revision in zip(types, revisions, strict=True)
    ]


async def commit_changes(  # noqa: PLR0913 - keyword options of one commit
    ports: Ports,
    author: Actor | str,
    reason: str,
    changes: Sequence[RecordChange],
    *,
    collection_revisions: Sequence[CollectionRevision] = (),
    idempotency_key: IdempotencyKey | None = None,
    drafts: FileDrafts = NO_DRAFTS,
    max_versions: int = 100,
    audit_subjects: Sequence[str] = (),
    tenant: str = "",
) -> TimestampMs:
    """Apply all changes and file drafts or none; return the commit's time.

    The audit names the author and, for an actor, the key. A commit that is only audited needs its
    `tenant`. Raises Conflict if a unique key is in use
    or a new path is not free, else Busy.
    """
    committed_at = ports.clock.now()
    name, key = author_and_key(author)
    commit = Commit(
        drafts.writes,
        name,
        reason,
        committed_at,
        expects=drafts.expects,
        changes=tuple(changes),
        collection_revisions=tuple(collection_revisions),
        unchanged_paths=drafts.unchanged_paths,
        path_checks=drafts.path_checks,
        idempotency_key=idempotency_key,
        max_versions=max_versions,
        audit_subjects=tuple(audit_subjects),
        key=key,
        audited_tenant=tenant,
    )
    [outcome] = await ports.trees.commit([commit])
    if isinstance(outcome, Applied):
        return committed_at
    raise _commit_refusal(outcome)


async def commit_each(
    ports: Ports,
    author: Actor | str,
    reason: str,
    plans: Sequence[tuple[RecordChange, FileDrafts]],
    collection_revisions: Sequence[CollectionRevision] = (),
) -> tuple[Refusal | None, ...]:
    """Apply each change with its file drafts; return why it was refused, in order.

    A refusal does not affect the others; Busy means that the decision must be repeated.
    """
    now, (name, key) = ports.clock.now(), author_and_key(author)
    commits = [
        Commit(
            drafts.writes,
            name,
            reason,
            now,
            expects=drafts.expects,
            changes=(change,),
            collection_revisions=tuple(collection_revisions),
            path_checks=drafts.path_checks,
            key=key,
        )
        for change, drafts in plans
    ]
    outcomes = await ports.trees.commit(commits) if commits else ()
    return tuple(
        None if isinstance(outcome, Applied) else _commit_refusal(outcome) for outcome in outcomes
    )


def _commit_refusal(outcome: Outcome) -> Refusal:
    """Refusal of a commit; Busy if the decision must be repeated."""
    if isinstance(outcome, PathOccupied):
        return path_occupied_error(outcome)
    if isinstance(outcome, ExpectationFailed) and outcome.unique_key:
        key_name, _, value = outcome.unique_key.split("/", 2)[2].partition(":")
        return Conflict(f'{key_name} "{value}" is already in use', **{key_name: value})
    if isinstance(outcome, ExpectationFailed) and isinstance(outcome.expected, RecordChange):
        change = outcome.expected
        if change.expected == 0:
            return Conflict(f"{change.type} {change.id} already exists")
        return Busy(f"{change.type} {change.id} was changed concurrently")
    return Busy.with_conflicts()


def record_after(
    change: RecordChange, updated_at: TimestampMs, previous: Record | None = None
) -> Record:
    """Return the record as a committed change leaves it."""
    assert change.body is not None
    return Record(
        change.tenant,
        change.type,
        change.id,
        revision=previous.revision + 1 if previous else 1,
        body=change.body,
        created_at=previous.created_at if previous else updated_at,
        updated_at=updated_at,
    )


async def delete_unchanged(
    ports: Ports, author: Actor | str, reason: str, records: Iterable[Record]
) -> int:
    """Delete records in batches; return how many. Skips batches with a changed record."""
    deleted = 0
    ordered = sorted(records, key=lambda record: record.tenant)
    for _, tenant_records in groupby(ordered, lambda record: record.tenant):
        changes = [
            RecordChange(item.tenant, item.type, item.id, None, item.revision)
            for item in tenant_records
        ]
        for start in range(0, len(changes), _BATCH_SIZE):
            batch = changes[start : start + _BATCH_SIZE]
            with suppress(Busy):
                await commit_changes(ports, author, reason, batch)
                deleted += len(batch)
    return deleted
