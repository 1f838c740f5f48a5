"""Shared items: values by key, per person (all their agents) or per shared agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from carrel.actions.files import files
from carrel.actions.files.file_writer import FileWriter, WriteOptions
from carrel.actions.local_locks import local_lock
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import Page, get_by_id_or_slug
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Path, Scope
from carrel.core.items import (
    Item,
    agent_items_scope,
    encode_item_value,
    item_from_head,
    item_media_type,
    item_path,
    key_from_path,
    parse_item_key,
    person_items_scope,
    preview,
)
from carrel.core.overlay.compose import File, resolve
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.core.redaction.redactor import RedactionResult
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

MAX_ITEMS: Final = 10_000
"""Maximum number of items in one scope."""
_BATCH_SIZE: Final = 64
"""Values loaded at a time for previews."""
_CURSOR: Final = re.compile(r"[1-9][0-9]{0,17}")


class StoredItem(Struct, frozen=True):
    """Item with its stored value."""

    item: Item
    value: str
    warned: tuple[str, ...] = ()
    """Kinds of suspected secrets that were left unredacted."""


class ItemRow(Struct, frozen=True):
    """Listed item with a preview of its value."""

    item: Item
    preview: str


class ItemWriteOptions(Struct, frozen=True, gc=False):
    """Options of an item write besides key and value."""

    condition: WriteCondition = UNCONDITIONAL
    created_by: str | None = None
    """Creator of a new item; by default the writing agent, else the caller."""
    reason: str = ""
    run: str | None = None
    idempotency_key: IdempotencyKey | None = None


DEFAULT_OPTIONS: Final = ItemWriteOptions()


def condition_for_version(version: int | None) -> WriteCondition:
    """Require that the item is at this version; 0 requires that it does not exist."""
    if version is None:
        return UNCONDITIONAL
    return WriteCondition(frozenset({f'"v{version}"'})) if version else WriteCondition(absent=True)


class _ItemWriter(FileWriter, frozen=True, gc=False):
    """FileWriter for items: no file class; keys, like paths, must not hold secrets."""

    key: str = ""

    def _require_writable(self, rules: TenantRules) -> None:
        """Access was checked when the scope was resolved."""

    async def _check_run(self, id: str) -> None:
        """Runs belong to the agent, not to the items' scope: see `_require_running`."""

    async def _check_and_redact(self, rules: TenantRules, content: bytes) -> RedactionResult:
        rules.require_no_secret("the key", self.key)
        return await super()._check_and_redact(rules, content)


async def list_items(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    prefix: str = "",
    cursor: str = "",
    limit: int = MAX_ITEMS,
) -> Page[ItemRow]:
    """List an agent's items, most recently written first; the first page has their number."""
    if cursor and not _CURSOR.fullmatch(cursor):
        raise ValidationError("invalid cursor")
    _, scope = await _resolve_scope(ports, actor, agent)
    [tree] = await ports.trees.read((scope,))
    heads = sorted(
        (head for head in tree.heads.values() if key_from_path(head.path).startswith(prefix)),
        key=lambda head: head.revision,
        reverse=True,
    )
    remaining = [head for head in heads if not cursor or head.revision < int(cursor)]
    items = [item_from_head(head, _etag(resolve(head.path, (tree,)))) for head in remaining[:limit]]
    previews = await _load_previews(ports, items)
    rows = tuple(ItemRow(item, previews[item.key]) for item in items)
    has_more = items and len(remaining) > limit
    return Page(rows, str(items[-1].revision) if has_more else None, None if cursor else len(heads))


async def _load_previews(ports: Ports, items: list[Item]) -> Mapping[str, str]:
    """Load previews in batches, since all values together may be very large."""
    previews: dict[str, str] = {}
    for start in range(0, len(items), _BATCH_SIZE):
        batch = items[start : start + _BATCH_SIZE]
        values = await ports.blobs.get([item.blob for item in batch])
        previews |= {item.key: preview(values[item.blob.digest].decode()) for item in batch}
    return previews


async def get(
    ports: Ports, actor: Actor, agent: str, key: str, version: int | None = None
) -> StoredItem:
    """Get an item, current or at a version. Raises NotFound."""
    _, scope = await _resolve_scope(ports, actor, agent)
    return await _read(ports, scope, key, version)


async def put(
    ports: Ports,
    actor: Actor,
    agent: str,
    key: str,
    value: str,
    options: ItemWriteOptions = DEFAULT_OPTIONS,
) -> StoredItem:
    """Create or replace an item; the creator of an existing item stays.

    Raises ValidationError, NotFound, Forbidden, WorkspaceConflict, WorkspaceTooLarge or Busy.
    """
    record, scope = await _resolve_scope(ports, actor, agent)
    await _require_running(ports, record, options.run)
    return await _write(ports, actor, scope, key, value, options)


async def delete(
    ports: Ports, actor: Actor, agent: str, key: str, options: ItemWriteOptions = DEFAULT_OPTIONS
) -> None:
    """Delete an item. Raises NotFound, WorkspaceConflict, Forbidden or Busy."""
    record, scope = await _resolve_scope(ports, actor, agent)
    await _require_running(ports, record, options.run)
    path = item_path(parse_item_key(key))
    write_options = WriteOptions(
        options.condition,
        None,
        options.reason or f"delete {key}",
        options.run,
        options.idempotency_key,
    )
    with _name_item_in_errors(key):
        await _ItemWriter(ports, (scope,), path, actor, write_options, key).delete()


async def publish(  # noqa: PLR0913 - source, target and options
    ports: Ports,
    actor: Actor,
    agent: str,
    key: str,
    target: str,
    *,
    target_key: str = "",
    options: ItemWriteOptions = DEFAULT_OPTIONS,
) -> tuple[Record, StoredItem]:
    """Copy an item of a private agent to a shared agent of the tenant, by id or slug.

    Checks the publishing agent first, then the target, then the item.
    """
    record = await _get_agent(ports, actor, agent)
    if agent_from_record(record).is_shared:
        raise Forbidden("a shared agent cannot publish: only private agents can")
    target_agent = await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, target)
    if not agent_from_record(target_agent).is_shared:
        raise Forbidden("items can be published to shared agents only, and the target is private")
    parse_item_key(target_key or key)
    _, scope = await _resolve_scope(ports, actor, agent)
    await _require_running(ports, record, options.run)
    source = await _read(ports, scope, key, None)
    target_scope = agent_items_scope(actor.tenant, target_agent.id)
    return target_agent, await _write(
        ports, actor, target_scope, target_key or key, source.value, options
    )


async def _get_agent(ports: Ports, actor: Actor, name: str) -> Record:
    [scope, *_] = await stacks.agent_stack(ports, actor, name)
    return await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, scope.name)


async def _resolve_scope(ports: Ports, actor: Actor, name: str) -> tuple[Record, Scope]:
    """Return the agent and its items' scope. Raises NotFound, Forbidden or Conflict."""
    record = await _get_agent(ports, actor, name)
    fields = agent_from_record(record)
    if fields.is_shared:
        return record, agent_items_scope(record.tenant, record.id)
    person = fields.owner_id or fields.human_pair_id or actor.person
    if person is None:
        raise Conflict("this agent has no person whose items it shares: set its ownerId")
    return record, person_items_scope(record.tenant, person)


async def _require_running(ports: Ports, agent: Record, id: str | None) -> None:
    """Check that a named run belongs to this agent and has not ended."""
    if id is None:
        return
    [run] = await ports.runs.get(agent.tenant, [id])
    if run is None or run.scope.name != agent.id:
        raise NotFound(f"no such run of this agent: {id}")
    if not run.accepts_writes:
        raise Conflict(f"the run is {run.status}", status=run.status)


async def _read(ports: Ports, scope: Scope, key: str, version: int | None) -> StoredItem:
    path = item_path(parse_item_key(key))
    with _name_item_in_errors(key):
        if version is not None:
            file, content = await files.read_version(ports, (scope,), path, version)
        else:
            file = await files.get_file(ports, (scope,), path)
            content = await files.read_content(ports, file, raw=True)
    return StoredItem(item_from_head(file.head, file.etag), content.decode())


async def _write(
    ports: Ports, actor: Actor, scope: Scope, key: str, value: str, options: ItemWriteOptions
) -> StoredItem:
    """Write an item, keeping its creator; serializes this process's writes to it."""
    path, content = item_path(parse_item_key(key)), encode_item_value(value)
    async with local_lock(ports.store, scope, path):
        return await _write_locked(ports, actor, scope, key, content, options)


@retry_on_conflict()
async def _write_locked(
    ports: Ports, actor: Actor, scope: Scope, key: str, content: bytes, options: ItemWriteOptions
) -> StoredItem:
    path = item_path(key)
    creator = options.created_by or actor.agent or actor.name
    current = await _find_current(ports, scope, path)
    with _name_item_in_errors(key):
        options.condition.check(path, current)
    if current is None:
        condition, type = WriteCondition(absent=True), item_media_type(creator)
    else:
        item_before = item_from_head(current.head, current.etag)
        condition, type = (
            condition_for_version(item_before.version),
            item_media_type(item_before.created_by, item_before.created_at),
        )
    write_options = WriteOptions(
        condition, type, options.reason or f"write {key}", options.run, options.idempotency_key
    )
    try:
        with _name_item_in_errors(key):
            writer = _ItemWriter(ports, (scope,), path, actor, write_options, key)
            written = await writer.put(content)
    except WorkspaceConflict:
        raise Busy.with_conflicts(f"item {key!a}") from None
    item = item_from_head(written.file.head, written.file.etag)
    return StoredItem(item, written.content.decode(), tuple(written.redacted.warned))


async def _find_current(ports: Ports, scope: Scope, path: Path) -> File | None:
    return resolve(path, await ports.trees.read((scope,), (path,)))


def _etag(file: File | None) -> str:
    assert file
    return file.etag


@contextmanager
def _name_item_in_errors(key: str) -> Iterator[None]:
    """Rephrase errors about a file path as errors about the item's key."""
    try:
        yield
    except WorkspaceConflict as stale:
        version = stale.current_version
        state = f"it is now at version {version}" if version else "it does not exist"
        raise WorkspaceConflict(
            f"item {key!a} changed since it was read: {state}", version
        ) from None
    except NotFound:
        raise NotFound(f"no such item: {key!a}") from None
    except Busy:
        raise Busy.with_conflicts(f"item {key!a}") from None
    except WorkspaceTooLarge as full:
        if "maxFiles" not in full.details:
            raise
        raise WorkspaceTooLarge(
            f"at most {MAX_ITEMS} items are allowed", maxItems=MAX_ITEMS
        ) from None
