"""Audit log: who changed which records, and why. Append-only."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from carrel.actions.public_cursors import conceal_audit_id, reveal_audit_id
from carrel.actions.record_names import load_record_names
from carrel.actions.records import Page
from carrel.core.access import Actor
from carrel.core.accounts import person_from_record
from carrel.core.store.audit_filter import EVERY_ENTRY, AuditFilter
from carrel.core.store.record import AuditEntry, RecordType
from carrel.ports import Ports

_EXPORT_BATCH: Final = 500
_CSV_COLUMNS: Final = ("at", "by", "byName", "key", "action", "why", "subjects")


async def list_audit_entries(
    ports: Ports,
    actor: Actor,
    filter: AuditFilter = EVERY_ENTRY,
    *,
    before: str = "",
    limit: int = 100,
) -> Page[AuditEntry]:
    """List audit entries, newest first, that follow the one with the id `before` if given.

    Raises ValidationError if it is no id of this tenant's log.
    """
    position = reveal_audit_id(ports, actor.tenant, before)
    entries = await ports.records.audit(actor.tenant, filter, before=position, limit=limit + 1)
    has_more = len(entries) > limit
    page = await _to_public(ports, actor.tenant, entries[:limit])
    total: int | None = None
    if not before:
        total = len(entries)
        if has_more:
            total = await ports.records.count_audit_entries(actor.tenant, filter)
    return Page(page, page[-1].id if has_more else None, total)


async def export_audit_entries(
    ports: Ports, actor: Actor, filter: AuditFilter, *, as_csv: bool
) -> AsyncIterator[bytes]:
    """Export all entries, newest first, as CSV or as one JSON object a line.

    Loads the first page before it returns, so that failures come before the response; afterwards
    one page is in memory at a time.
    """
    page = await list_audit_entries(ports, actor, filter, limit=_EXPORT_BATCH)

    async def iter_pages() -> AsyncIterator[Page[AuditEntry]]:
        following = page
        yield following
        while following.next is not None:
            following = await list_audit_entries(
                ports, actor, filter, before=following.next, limit=_EXPORT_BATCH
            )
            yield following

    return _iter_csv(iter_pages()) if as_csv else _iter_json_lines(iter_pages())


async def _iter_csv(pages: AsyncIterator[Page[AuditEntry]]) -> AsyncIterator[bytes]:
    yield _csv_lines([_CSV_COLUMNS])
    async for page in pages:
        rows = [_export_row(entry) for entry in page.items]
        if rows:
            yield _csv_lines([[_cell(row[name]) for name in _CSV_COLUMNS] for row in rows])


async def _iter_json_lines(pages: AsyncIterator[Page[AuditEntry]]) -> AsyncIterator[bytes]:
    async for page in pages:
        rows = [_export_row(entry) for entry in page.items]
        if rows:
            yield b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


async def load_person_names(ports: Ports, tenant: str, authors: Collection[str]) -> dict[str, str]:
    """Load the names of the authors that are people, by id."""
    people = await ports.records.get(tenant, RecordType.PERSON, sorted(authors))
    return {person.id: person_from_record(person).name for person in people if person}


def named_record(subject: str) -> tuple[str, str]:
    """Type and id of the record that a subject names or is a file of."""
    record_type, _, id = subject.removeprefix("file/").partition("/")
    return record_type, id.partition("/")[0] if subject.startswith("file/") else id


async def _to_public(
    ports: Ports, tenant: str, entries: Sequence[AuditEntry]
) -> tuple[AuditEntry, ...]:
    names = await load_person_names(ports, tenant, {entry.author for entry in entries})
    names |= {entry.key.id: entry.key.name for entry in entries if entry.key}
    subjects = (named_record(subject) for entry in entries for subject in entry.subjects)
    objects = await load_record_names(ports, tenant, subjects)
    return tuple(
        replace(
            entry,
            id=conceal_audit_id(ports, tenant, entry.id),
            author_name=names.get(entry.author),
            object_names={
                subject: objects[record]
                for subject in entry.subjects
                if (record := named_record(subject)) in objects
            },
        )
        for entry in entries
    )


def _export_row(entry: AuditEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "at": datetime.fromtimestamp(entry.at / 1000, UTC).isoformat(timespec="milliseconds"),
        "by": entry.author,
        "byName": entry.author_name,
        "key": entry.key and entry.key.name,
        "action": entry.action,
        "why": entry.reason,
        "subjects": entry.subjects,
        "names": entry.object_names,
    }


def _cell(value: object) -> str:
    """Text of a cell that no spreadsheet takes for a formula."""
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value or "")
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _csv_lines(rows: Sequence[Sequence[str]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode()
