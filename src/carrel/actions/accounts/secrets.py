"""Secrets of a tenant: stored sealed, redacted from content, never returned."""

from __future__ import annotations

from carrel.actions.policy.tenant_rules import load_rules, secret_context
from carrel.actions.records import (
    Page,
    commit_changes,
    get_record,
    list_page,
    record_after,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.accounts import SecretRecord
from carrel.core.errors import ValidationError
from carrel.core.redaction.redactor import secret_problem
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordChange, RecordType, deletion, encode_body
from carrel.ports import Ports


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await get_record(ports, actor.tenant, RecordType.SECRET, id)


async def list_secrets(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await list_page(ports, actor.tenant, RecordType.SECRET, cursor=cursor, limit=limit)


@retry_on_conflict()
async def put(
    ports: Ports, actor: Actor, id: str, value: str, idempotency_key: IdempotencyKey | None = None
) -> Record:
    """Create or replace a secret. Raises ValidationError without repeating the value."""
    if problem := secret_problem(id, value):
        raise ValidationError(problem)
    (await load_rules(ports, actor.tenant)).require_no_secret("the id", id)
    [existing] = await ports.records.get(actor.tenant, RecordType.SECRET, [id])
    sealed = ports.vault.seal(value.encode(), secret_context(actor.tenant, id))
    expected = existing.revision if existing else None
    body = encode_body(SecretRecord(sealed), existing)
    change = RecordChange(actor.tenant, RecordType.SECRET, id, body, expected)
    reason = "replace a secret" if existing else "add a secret"
    committed_at = await commit_changes(
        ports, actor, reason, [change], idempotency_key=idempotency_key
    )
    return record_after(change, committed_at, existing)


@retry_on_conflict()
async def delete(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    existing = await get(ports, actor, id)
    await commit_changes(
        ports,
        actor,
        "remove a secret",
        [deletion(existing)],
        idempotency_key=idempotency_key,
    )
