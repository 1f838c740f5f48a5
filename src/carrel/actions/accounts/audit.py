"""Audit log: who changed which records, and why. Append-only."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from carrel.actions.public_cursors import conceal_audit_id, reveal_audit_id
from carrel.actions.records import Page
from carrel.core.access import Actor
from carrel.core.accounts import person_from_record
from carrel.core.store.record import AuditEntry, RecordType
from carrel.ports import Ports


async def list_audit_entries(
    ports: Ports, actor: Actor, *, before: str = "", limit: int = 100
) -> Page[AuditEntry]:
    """List audit entries, newest first, older than the one with the id `before` if given.

    Raises ValidationError if it is no id of this tenant's log.
    """
    position = reveal_audit_id(ports, actor.tenant, before)
    entries = await ports.records.audit(actor.tenant, before=position, limit=limit + 1)
    has_more = len(entries) > limit
    page = await _to_public(ports, actor.tenant, entries[:limit])
    return Page(page, page[-1].id if has_more else None)


async def _to_public(
    ports: Ports, tenant: str, entries: Sequence[AuditEntry]
) -> tuple[AuditEntry, ...]:
    authors = sorted({entry.author for entry in entries})
    people = await ports.records.get(tenant, RecordType.PERSON, authors)
    names = {person.id: person_from_record(person).name for person in people if person}
    names |= {entry.key.id: entry.key.name for entry in entries if entry.key}
    return tuple(
        replace(
            entry,
            id=conceal_audit_id(ports, tenant, entry.id),
            author_name=names.get(entry.author),
        )
        for entry in entries
    )
