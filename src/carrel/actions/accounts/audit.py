"""The audit: who changed which records, and why. It is only ever appended to."""

from __future__ import annotations

from carrel.actions.records import Page
from carrel.core.access import Actor
from carrel.core.store.record import AuditEntry
from carrel.ports import Ports


async def listing(
    ports: Ports, actor: Actor, *, before: int = 0, limit: int = 100
) -> Page[AuditEntry]:
    """Newest first; before 0 is from the newest."""
    found = await ports.records.audit(actor.tenant, before=before, limit=limit + 1)
    more = len(found) > limit
    return Page(found[:limit], str(found[limit - 1].id) if more else None)
