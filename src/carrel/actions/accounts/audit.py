"""Audit log: who changed which records, and why. Append-only."""

from __future__ import annotations

from carrel.actions.records import Page
from carrel.core.access import Actor
from carrel.core.store.record import AuditEntry
from carrel.ports import Ports


async def list_audit_entries(
    ports: Ports, actor: Actor, *, before: int = 0, limit: int = 100
) -> Page[AuditEntry]:
    """List audit entries, newest first; `before=0` starts at the newest."""
    entries = await ports.records.audit(actor.tenant, before=before, limit=limit + 1)
    has_more = len(entries) > limit
    return Page(entries[:limit], str(entries[limit - 1].id) if has_more else None)
