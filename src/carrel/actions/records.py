"""Changing records: every change is a commit, refused where it would clash."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Generic, TypeVar

from msgspec import Struct

from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.errors import Conflict as Taken
from carrel.core.identifiers import TimestampMs, identifier
from carrel.core.store.record import (
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
    unique_key,
)
from carrel.core.store.tree import Applied, Commit, Expect, ExpectationFailed, IdempotencyKey, Write
from carrel.ports import Ports

_ATTEMPTS: Final = 10
_TOGETHER: Final = 100
_ID: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
PREFIXES: Final[Mapping[RecordType, str]] = {
    RecordType.PERSON: "per",
    RecordType.KEY: "key",
    RecordType.WEBHOOK: "whk",
    RecordType.TEMPLATE: "tpl",
    RecordType.AGENT: "agt",
    RecordType.SANDBOX: "sb",
    RecordType.WORKSPACE: "ws",
    RecordType.APPROVAL: "apr",
}
"""What ids begin with, as World.clock makes them."""

Item = TypeVar("Item")


class FileDrafts(Struct, frozen=True):
    """Files to be written with a change, and what they were written from."""

    writes: tuple[Write, ...] = ()
    expects: tuple[Expect, ...] = ()

    def __add__(self, other: FileDrafts) -> FileDrafts:
        return FileDrafts(self.writes + other.writes, self.expects + other.expects)


NO_DRAFTS: Final = FileDrafts()


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: tuple[Item, ...]
    next: str | None
    """Where the following page begins, None on the last."""


async def find(ports: Ports, tenant: str, record_type: RecordType, id: str) -> Record:
    """Raises Missing, also for what could be no id."""
    [record] = await ports.records.get(
        tenant, record_type, [_valid_id_or_not_found(record_type, id)]
    )
    if record is None:
        raise NotFound(f"there is no {record_type} {id}")
    return record


async def find_by_id_or_slug(
    ports: Ports, tenant: str, record_type: RecordType, name: str
) -> Record:
    """A record by its id or by its slug: ids have a ``_``, and no slug has one."""
    _valid_id_or_not_found(record_type, name)
    if "_" in name:
        [record] = await ports.records.get(tenant, record_type, [name])
    else:
        [record] = await ports.records.get_by_unique_key(
            [unique_key(tenant, record_type, "slug", name)]
        )
    if record is None:
        raise NotFound(f"there is no {record_type} {name}")
    return record


def _valid_id_or_not_found(record_type: RecordType, id: str) -> str:
    try:
        return identifier(id)
    except ValidationError:
        raise NotFound(f"there is no {record_type} of that id") from None


def validate_cursor(cursor: str, prefix: str | None) -> str:
    """A cursor that a page may have given out: the id of its last, which may be gone since.

    Raises Malformed. Without a prefix people choose the ids, and any that can be one will do.
    """
    possible = _ID if prefix is None else rf"{prefix}_[0-9a-f]{{24}}"
    if cursor and not re.fullmatch(possible, cursor):
        raise ValidationError("the cursor is not the next of a page of this list")
    return cursor


async def page(
    ports: Ports,
    tenant: str,
    record_type: RecordType,
    *,
    link: str = "",
    cursor: str = "",
    limit: int = 100,
) -> Page[Record]:
    after = validate_cursor(cursor, PREFIXES.get(record_type))
    found = await ports.records.list(tenant, record_type, link=link, after=after, limit=limit + 1)
    more = len(found) > limit
    return Page(found[:limit], found[limit - 1].id if more else None)


async def iter_records(
    ports: Ports, tenant: str, record_type: RecordType, link: str = ""
) -> AsyncIterator[Record]:
    """Every record of a noun, however many."""
    after = ""
    while found := await ports.records.list(tenant, record_type, link=link, after=after, limit=500):
        for record in found:
            yield record
        after = found[-1].id


async def collection_revision(
    ports: Ports, tenant: str, record_type: RecordType
) -> CollectionRevision:
    """All records of a noun as they are now, for a commit that rests on them: ask before reading.

    Every decision made from what is read afterwards is refused if any of them changes meanwhile.
    """
    [found] = await collection_revisions(ports, tenant, (record_type,))
    return found


async def collection_revisions(
    ports: Ports, tenant: str, record_types: Iterable[RecordType]
) -> list[CollectionRevision]:
    """The same for several nouns."""
    asked = tuple(record_types)
    seen = await ports.records.collection_revisions(
        [(tenant, record_type) for record_type in asked]
    )
    return [
        CollectionRevision(tenant, record_type, at)
        for record_type, at in zip(asked, seen, strict=True)
    ]


async def retry_while_busy(attempt: Callable[[], Awaitable[Item]]) -> Item:
    """Read and decide again for as long as others change what it rests on; Busy in the end."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except Busy:
            continue
    return await attempt()


async def commit_changes(  # noqa: PLR0913 - a change and all that goes with it, by name
    ports: Ports,
    author: str,
    reason: str,
    changes: Sequence[RecordChange],
    *,
    collection_revisions: Sequence[CollectionRevision] = (),
    receipt: IdempotencyKey | None = None,
    drafts: FileDrafts = NO_DRAFTS,
    keep: int = 100,
) -> TimestampMs:
    """Apply all changes or none, with the files that follow from them, and say when.

    Raises Taken for a name another has, else Busy.
    """
    at = ports.clock.now()
    commit = Commit(
        drafts.writes,
        author,
        reason,
        at,
        expects=drafts.expects,
        changes=tuple(changes),
        collection_revisions=tuple(collection_revisions),
        idempotency_key=receipt,
        max_versions=keep,
    )
    [outcome] = await ports.trees.commit([commit])
    if isinstance(outcome, Applied):
        return at
    if isinstance(outcome, ExpectationFailed) and outcome.handle:
        what, _, value = outcome.handle.split("/", 2)[2].partition(":")
        raise Taken(f"another has the {what} {value}", **{what: value})
    if isinstance(outcome, ExpectationFailed) and isinstance(outcome.expected, RecordChange):
        change = outcome.expected
        if change.expected == 0:
            raise Taken(f"there is a {change.type} {change.id} already")
        raise Busy(f"the {change.type} {change.id} was changed by another at the same time")
    raise Busy("others were changing the same things at the same time")


def record_after(change: RecordChange, at: TimestampMs, was: Record | None = None) -> Record:
    """The record that a change made at that moment."""
    assert change.body is not None
    return Record(
        change.tenant,
        change.type,
        change.id,
        revision=was.revision + 1 if was else 1,
        body=change.body,
        created_at=was.created_at if was else at,
        updated_at=at,
    )


async def delete_unchanged(
    ports: Ports, author: str, reason: str, records: Iterable[Record]
) -> int:
    """Remove records as they were seen, some at a time; how many. What has changed since stays."""
    gone = 0
    ordered = sorted(records, key=lambda record: record.tenant)
    for _, theirs in groupby(ordered, lambda record: record.tenant):
        changes = [RecordChange(one.tenant, one.type, one.id, None, one.revision) for one in theirs]
        for start in range(0, len(changes), _TOGETHER):
            some = changes[start : start + _TOGETHER]
            with suppress(Busy):
                await commit_changes(ports, author, reason, some)
                gone += len(some)
    return gone
