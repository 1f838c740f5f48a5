"""Memory stores: shared workspaces with metadata, which can be archived."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct
from msgspec.structs import replace

from carrel.actions.overlay.stacks import workspace_stack
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import Page
from carrel.actions.retry import retry_on_conflict
from carrel.actions.sandbox import account_records, workspaces
from carrel.actions.sandbox.workspaces import WORKSPACE_TYPE
from carrel.core.access import Actor
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.memory_stores.object_ids import parse_store_id
from carrel.core.memory_stores.store_fields import check_description, check_name, merge_metadata
from carrel.core.sandbox.account_record import AccountRecord, account_from_record
from carrel.core.sandbox.workspace_config import parse_workspace_config
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.ports import Ports

_BATCH_SIZE = 200


class StorePatch(Struct, frozen=True):
    """Fields of a store to set; None keeps a field."""

    name: str | None = None
    description: str | None = None
    metadata: Mapping[str, str | None] | None = None


class StoreFilter(Struct, frozen=True):
    """Which stores a list has."""

    include_archived: bool = False
    since: TimestampMs | None = None
    until: TimestampMs | None = None

    def matches(self, record: Record) -> bool:
        return (
            (self.include_archived or not is_archived(record))
            and (self.since is None or self.since <= record.created_at)
            and (self.until is None or record.created_at <= self.until)
        )


def is_archived(record: Record) -> bool:
    return bool(account_from_record(record).archived_at)


async def load_scope(ports: Ports, actor: Actor, store: str) -> Scope:
    """Return the scope of a store's memories. Raises NotFound."""
    try:
        [scope] = await workspace_stack(ports, actor, parse_store_id(store))
    except NotFound:
        raise NotFound(f"no such memory store: {store}") from None
    return scope


async def get(ports: Ports, actor: Actor, store: str) -> Record:
    """Get a store as the record of its workspace. Raises NotFound."""
    scope = await load_scope(ports, actor, store)
    try:
        return await workspaces.get(ports, actor, scope.name)
    except NotFound:
        raise NotFound(f"no such memory store: {store}") from None


async def get_writable(ports: Ports, actor: Actor, store: str) -> Record:
    """Get a store that is not archived. Raises NotFound and ValidationError."""
    record = await get(ports, actor, store)
    if is_archived(record):
        raise ValidationError(f"the memory store {store} is archived")
    return record


async def list_stores(
    ports: Ports, actor: Actor, store_filter: StoreFilter, after: str, limit: int
) -> Page[Record]:
    """List stores in the order of their creation, past the id of a workspace."""
    matching: list[Record] = []
    while len(matching) <= limit:
        records = await ports.records.list(
            actor.tenant, WORKSPACE_TYPE.record_type, after=after, limit=_BATCH_SIZE
        )
        matching += [record for record in records if store_filter.matches(record)]
        if len(records) < _BATCH_SIZE:
            break
        after = records[-1].id
    has_more = len(matching) > limit
    return Page(tuple(matching[:limit]), matching[limit - 1].id if has_more else None)


async def create(
    ports: Ports, actor: Actor, fields: StorePatch, idempotency_key: IdempotencyKey | None = None
) -> Record:
    """Create a store with a workspace of its own. Raises ValidationError."""
    new = await _apply(ports, actor, AccountRecord(config=parse_workspace_config({})), fields)
    id = ports.clock.new_id(WORKSPACE_TYPE.prefix)
    return await account_records.add_record(ports, actor, WORKSPACE_TYPE, id, new, idempotency_key)


@retry_on_conflict()
async def update(
    ports: Ports,
    actor: Actor,
    store: str,
    patch: StorePatch,
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Change a store. Raises NotFound, and ValidationError also if it is archived."""
    record = await get_writable(ports, actor, store)
    updated = await _apply(ports, actor, account_from_record(record), patch)
    return await account_records.change_record(
        ports, actor, WORKSPACE_TYPE, record, updated, idempotency_key=idempotency_key
    )


@retry_on_conflict()
async def archive(
    ports: Ports, actor: Actor, store: str, idempotency_key: IdempotencyKey | None = None
) -> Record:
    """Archive a store for ever; an archived one stays as it is. Raises NotFound."""
    record = await get(ports, actor, store)
    if is_archived(record):
        return record
    archived = replace(account_from_record(record), archived_at=ports.clock.now())
    return await account_records.change_record(
        ports,
        actor,
        WORKSPACE_TYPE,
        record,
        archived,
        idempotency_key=idempotency_key,
        verb="archive",
    )


async def delete(
    ports: Ports, actor: Actor, store: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete a store with its workspace and all files. Raises NotFound."""
    record = await get(ports, actor, store)
    await workspaces.delete(ports, actor, record.id, idempotency_key)


async def _apply(
    ports: Ports, actor: Actor, stored: AccountRecord, patch: StorePatch
) -> AccountRecord:
    """The record with the fields of a patch, redacted and checked."""
    rules = await load_rules(ports, actor.tenant)
    fields: StorePatch = rules.redact_fields(patch)
    name = stored.name if fields.name is None else check_name(fields.name)
    description, metadata = stored.description, stored.metadata
    if fields.description is not None:
        description = check_description(fields.description) or UNSET
    if fields.metadata is not None:
        merged = merge_metadata({} if metadata is UNSET else metadata, fields.metadata)
        metadata = merged or UNSET
    return replace(stored, name=name, description=description, metadata=metadata)
