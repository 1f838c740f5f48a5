"""A tenant's secrets: kept sealed, so that they are recognised and redacted, and never shown."""

from __future__ import annotations

from carrel.actions.policy.tenant_rules import secret_context
from carrel.actions.records import Page, commit_changes, find, page, record_after, retry_while_busy
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.redaction.redactor import secret_problem
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await find(ports, actor.tenant, RecordType.SECRET, id)


async def listing(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await page(ports, actor.tenant, RecordType.SECRET, cursor=cursor, limit=limit)


async def put(
    ports: Ports, actor: Actor, id: str, value: str, receipt: IdempotencyKey | None = None
) -> Record:
    """Keep a value, or another in its place. Raises Malformed, without repeating it."""
    if problem := secret_problem(id, value):
        raise ValidationError(problem)

    async def attempt() -> Record:
        [was] = await ports.records.get(actor.tenant, RecordType.SECRET, [id])
        sealed = ports.vault.seal(value.encode(), secret_context(actor.tenant, id))
        expected = was.revision if was else None
        change = RecordChange(actor.tenant, RecordType.SECRET, id, {"sealed": sealed}, expected)
        reason = "replace a secret" if was else "add a secret"
        at = await commit_changes(ports, actor.name, reason, [change], receipt=receipt)
        return record_after(change, at, was)

    return await retry_while_busy(attempt)


async def delete(
    ports: Ports, actor: Actor, id: str, receipt: IdempotencyKey | None = None
) -> None:
    async def attempt() -> None:
        was = await get(ports, actor, id)
        change = RecordChange(was.tenant, RecordType.SECRET, was.id, None, was.revision)
        await commit_changes(ports, actor.name, "remove a secret", [change], receipt=receipt)

    await retry_while_busy(attempt)
