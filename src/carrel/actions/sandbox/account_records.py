"""Account-level records (sandboxes, workspaces) that agents refer to by id."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import commit_changes, iter_records, record_after
from carrel.actions.retry import retry_on_conflict
from carrel.core import field_validation
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import parse_identifier
from carrel.core.sandbox.account_record import AccountRecord, account_from_record
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordChange, RecordType, encode_body, unique_key
from carrel.ports import Ports

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AccountRecordType:
    """One type of account-level record."""

    record_type: RecordType
    prefix: str
    merge_config: Callable[[Ports, str, str, Config, Config], Awaitable[Config]]
    """(ports, tenant, id, merge patch, stored config) → config, or ValidationError."""

    @property
    def not_found(self) -> NotFound:
        return NotFound(f"{self.record_type.capitalize()} not found")


async def get(ports: Ports, actor: Actor, account_type: AccountRecordType, id: str) -> Record:
    """Get a record. Raises NotFound with the same message for any reason."""
    try:
        [record] = await ports.records.get(
            actor.tenant, account_type.record_type, [parse_identifier(id)]
        )
    except ValidationError:
        raise account_type.not_found from None
    if record is None:
        raise account_type.not_found
    return record


async def list_records(ports: Ports, actor: Actor, account_type: AccountRecordType) -> list[Record]:
    """List all records of the type, oldest first."""
    return [record async for record in iter_records(ports, actor.tenant, account_type.record_type)]


async def create(
    ports: Ports,
    actor: Actor,
    account_type: AccountRecordType,
    fields: Config,
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Create a record. Raises ValidationError."""
    id = ports.clock.new_id(account_type.prefix)
    fields = await _redact_texts(ports, actor.tenant, fields)
    name, description = field_validation.require_name(fields.get("name")), _description(fields)
    config = await account_type.merge_config(ports, actor.tenant, id, _validate_config(fields), {})
    new = AccountRecord(name=name, config=config, description=description)
    return await add_record(ports, actor, account_type, id, new, idempotency_key)


async def add_record(
    ports: Ports,
    actor: Actor,
    account_type: AccountRecordType,
    id: str,
    new: AccountRecord,
    idempotency_key: IdempotencyKey | None,
) -> Record:
    """Commit a new record, whose fields were checked."""
    request = UNSET if idempotency_key is None else _hash_request(idempotency_key)
    change = _record_change(actor.tenant, account_type, id, replace(new, request=request))
    reason = f"create a {account_type.record_type}"
    committed_at = await commit_changes(
        ports, actor, reason, [change], idempotency_key=idempotency_key
    )
    return record_after(change, committed_at)


async def get_created(
    ports: Ports, actor: Actor, account_type: AccountRecordType, idempotency_key: IdempotencyKey
) -> Record:
    """Get the record an earlier request created. Raises NotFound if it was deleted."""
    [record] = await ports.records.get_by_unique_key(
        [_request_unique_key(actor.tenant, account_type, _hash_request(idempotency_key))]
    )
    if record is None:
        raise account_type.not_found
    return record


@retry_on_conflict()
async def patch(
    ports: Ports,
    actor: Actor,
    account_type: AccountRecordType,
    id: str,
    fields: Config,
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Change the given fields. Raises NotFound, ValidationError, and Conflict if archived."""
    existing = await get(ports, actor, account_type, id)
    current = updated = account_from_record(existing)
    if current.archived_at:
        raise Conflict(f"the {account_type.record_type} is archived")
    fields = await _redact_texts(ports, actor.tenant, fields)
    if "name" in fields:
        updated = replace(updated, name=field_validation.require_name(fields["name"]))
    if "description" in fields:
        updated = replace(updated, description=_description(fields))
    if "config" in fields:
        stored = {} if fields["config"] is None else current.config
        config = await account_type.merge_config(
            ports, existing.tenant, id, _validate_config(fields), stored
        )
        updated = replace(updated, config=config)
    return await change_record(
        ports, actor, account_type, existing, updated, idempotency_key=idempotency_key
    )


async def change_record(  # noqa: PLR0913 - keyword options of one commit
    ports: Ports,
    actor: Actor,
    account_type: AccountRecordType,
    existing: Record,
    updated: AccountRecord,
    *,
    idempotency_key: IdempotencyKey | None,
    verb: str = "change",
) -> Record:
    """Commit the new fields of a record, which were checked, unless it has them already."""
    if updated == account_from_record(existing):
        return existing
    change = _record_change(existing.tenant, account_type, existing.id, updated, existing)
    reason = f"{verb} a {account_type.record_type}"
    committed_at = await commit_changes(
        ports, actor, reason, [change], idempotency_key=idempotency_key
    )
    return record_after(change, committed_at, existing)


async def _redact_texts(ports: Ports, tenant: str, fields: Config) -> Config:
    """Redact name and description; `merge_config` redacts the config."""
    texts = {name: fields[name] for name in ("name", "description") if name in fields}
    return {**fields, **(await load_rules(ports, tenant)).redact_fields(texts)}


def _validate_config(fields: Config) -> Config:
    """Return the config after checking its depth. Raises ValidationError."""
    raw = fields.get("config")
    config = field_validation.require_mapping("config", {} if raw is None else raw)
    field_validation.require_shallow("config", config)
    return config


def _description(fields: Config) -> str | UnsetType:
    description = field_validation.parse_description(fields.get("description"))
    return UNSET if description is None else description


def _record_change(
    tenant: str,
    account_type: AccountRecordType,
    id: str,
    new: AccountRecord,
    existing: Record | None = None,
) -> RecordChange:
    body, expected = encode_body(new, existing), existing.revision if existing else 0
    unique_keys = (_request_unique_key(tenant, account_type, new.request),) if new.request else ()
    return RecordChange(tenant, account_type.record_type, id, body, expected, unique_keys)


def _request_unique_key(tenant: str, account_type: AccountRecordType, request: str) -> str:
    return unique_key(tenant, account_type.record_type, "request", request)


def _hash_request(idempotency_key: IdempotencyKey) -> str:
    encoded = msgspec.json.encode((idempotency_key.endpoint, idempotency_key.key))
    return hashlib.sha256(encoded).hexdigest()
