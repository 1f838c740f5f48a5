"""Shared items: values under keys that the agents of one person share, or a shared agent keeps."""

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
from carrel.actions.records import Page, find_by_id_or_slug
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.agents.agent import agent_fields
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
    item_key,
    item_of,
    item_path,
    item_type,
    item_value,
    items_of_agent,
    items_of_person,
    key_at,
    preview,
)
from carrel.core.overlay.compose import File, resolve
from carrel.core.overlay.edit import UNCONDITIONAL, WriteCondition
from carrel.core.redaction.redactor import RedactionResult
from carrel.core.runs import RunStatus
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports

MOST: Final = 10_000
"""Items of one scope."""
_ATTEMPTS: Final = 10
_AT_ONCE: Final = 64
"""Values that are held at one time to see how they begin."""
_CURSOR: Final = re.compile(r"[1-9][0-9]{0,17}")


class StoredItem(Struct, frozen=True):
    """An item with its value, as it is stored."""

    item: Item
    value: str
    warned: tuple[str, ...] = ()
    """What in it looked like a secret, and was left as it is."""


class ItemRow(Struct, frozen=True):
    """An item in a list, with how its value begins."""

    item: Item
    preview: str


class ItemWriteOptions(Struct, frozen=True, gc=False):
    """What a writer may say beside key and value."""

    condition: WriteCondition = UNCONDITIONAL
    by: str | None = None
    """Who is to stand as its creator, where it is new: the agent that writes, else the caller."""
    why: str = ""
    run: str | None = None
    receipt: IdempotencyKey | None = None


PLAIN: Final = ItemWriteOptions()


def as_read(version: int | None) -> WriteCondition:
    """That an item is still at the version that was read; 0: that there is none."""
    if version is None:
        return UNCONDITIONAL
    return WriteCondition(frozenset({f'"v{version}"'})) if version else WriteCondition(absent=True)


class _ItemWriter(FileWriter, frozen=True, gc=False):
    """Writes an item: it has no class, and its key is as little a place for secrets as a path."""

    key: str = ""

    def _may_write(self, rules: TenantRules) -> None:
        """Whose items these are has been decided when their scope was found."""

    async def _check_run(self, id: str) -> None:
        """A run is of the agent, and not of its items: see ``_told_in_run``."""

    def _check_and_redact(self, rules: TenantRules, content: bytes) -> RedactionResult:
        if rules.redactor.finds_in(self.key):
            raise ValidationError("the key holds a secret")
        return super()._check_and_redact(rules, content)


async def listing(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    prefix: str = "",
    cursor: str = "",
    limit: int = MOST,
) -> Page[ItemRow]:
    """The items that an agent has, the last written first."""
    if cursor and not _CURSOR.fullmatch(cursor):
        raise ValidationError("the cursor is none that a page gave")
    _, scope = await _home(ports, actor, agent)
    [tree] = await ports.trees.read((scope,))
    found = sorted(
        (head for head in tree.heads.values() if key_at(head.path).startswith(prefix)),
        key=lambda head: head.revision,
        reverse=True,
    )
    past = [head for head in found if not cursor or head.revision < int(cursor)]
    shown = [item_of(head, _etag(resolve(head.path, (tree,)))) for head in past[:limit]]
    previews = await _previews(ports, shown)
    rows = tuple(ItemRow(item, previews[item.key]) for item in shown)
    return Page(rows, str(shown[-1].revision) if shown and len(past) > limit else None)


async def _previews(ports: Ports, items: list[Item]) -> Mapping[str, str]:
    """How each value begins; a few are read at a time, since together they may be very large."""
    found: dict[str, str] = {}
    for at in range(0, len(items), _AT_ONCE):
        some = items[at : at + _AT_ONCE]
        values = await ports.blobs.get([item.blob for item in some])
        found |= {item.key: preview(values[item.blob.digest].decode()) for item in some}
    return found


async def get(
    ports: Ports, actor: Actor, agent: str, key: str, version: int | None = None
) -> StoredItem:
    """One item, as it is now or was at a version. Raises Missing."""
    _, scope = await _home(ports, actor, agent)
    return await _read(ports, scope, key, version)


async def put(
    ports: Ports, actor: Actor, agent: str, key: str, value: str, writing: ItemWriteOptions = PLAIN
) -> StoredItem:
    """Write one item, whether or not it was there; who wrote it first stays its creator.

    Raises Malformed, Missing, Forbidden, Stale, TooLarge or Busy.
    """
    record, scope = await _home(ports, actor, agent)
    await _told_in_run(ports, record, writing.run)
    return await _write(ports, actor, scope, key, value, writing)


async def delete(
    ports: Ports, actor: Actor, agent: str, key: str, writing: ItemWriteOptions = PLAIN
) -> None:
    """Remove one item. Raises Missing, Stale, Forbidden or Busy."""
    record, scope = await _home(ports, actor, agent)
    await _told_in_run(ports, record, writing.run)
    path = item_path(item_key(key))
    intent = WriteOptions(
        writing.condition, None, writing.why or f"delete {key}", writing.run, writing.receipt
    )
    with _speaking_of(key):
        await _ItemWriter(ports, (scope,), path, actor, intent, key).delete()


async def publish(  # noqa: PLR0913 - from whom what goes where
    ports: Ports,
    actor: Actor,
    agent: str,
    key: str,
    target: str,
    *,
    target_key: str = "",
    writing: ItemWriteOptions = PLAIN,
) -> tuple[Record, StoredItem]:
    """Copy an item of a private agent to a shared agent of the same tenant, by id or slug.

    What is told of first is checked first: who publishes, to whom, and then what.
    """
    record = await _agent(ports, actor, agent)
    if agent_fields(record)["isShared"]:
        raise Forbidden("a shared agent cannot publish: only what is private can be")
    other = await find_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, target)
    if not agent_fields(other)["isShared"]:
        raise Forbidden("items are published to shared agents only, and the target is private")
    item_key(target_key or key)
    _, scope = await _home(ports, actor, agent)
    await _told_in_run(ports, record, writing.run)
    kept = await _read(ports, scope, key, None)
    collection_revision = items_of_agent(actor.tenant, other.id)
    return other, await _write(
        ports, actor, collection_revision, target_key or key, kept.value, writing
    )


async def _agent(ports: Ports, actor: Actor, name: str) -> Record:
    [own, *_] = await stacks.agent_stack(ports, actor, name)
    return await find_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, own.name)


async def _home(ports: Ports, actor: Actor, name: str) -> tuple[Record, Scope]:
    """An agent, and where its items are. Raises Missing, Forbidden or Taken."""
    record = await _agent(ports, actor, name)
    known = agent_fields(record)
    if known["isShared"]:
        return record, items_of_agent(record.tenant, record.id)
    person = known["ownerId"] or known["humanPairId"] or actor.person
    if person is None:
        raise Conflict("nobody is known whose items this agent shares: give it an ownerId")
    if actor.kind is CredentialKind.PERSON and actor.role is Role.MEMBER and actor.person != person:
        raise Forbidden("these are the items of another person")
    return record, items_of_person(record.tenant, person)


async def _told_in_run(ports: Ports, agent: Record, id: str | None) -> None:
    """A write may name the run it belongs to: one of this agent that has not ended."""
    if id is None:
        return
    [run] = await ports.runs.get(agent.tenant, [id])
    if run is None or run.scope.name != agent.id:
        raise NotFound(f"there is no run {id} of this agent")
    if run.status is not RunStatus.RUNNING:
        raise Conflict(f"the run has {run.status}", status=run.status)


async def _read(ports: Ports, scope: Scope, key: str, version: int | None) -> StoredItem:
    path = item_path(item_key(key))
    with _speaking_of(key):
        if version is not None:
            file, content = await files.read_version(ports, (scope,), path, version)
        else:
            file = await files.find_file(ports, (scope,), path)
            content = await files.read_content(ports, file, raw=True)
    return StoredItem(item_of(file.head, file.etag), content.decode())


async def _write(
    ports: Ports, actor: Actor, scope: Scope, key: str, value: str, writing: ItemWriteOptions
) -> StoredItem:
    """What is there is looked at first, since it says who its creator is, and must still be so."""
    path, content = item_path(item_key(key)), item_value(value)
    async with local_lock(id(ports.trees), scope, path):
        return await _write_at(ports, actor, scope, key, content, writing)


async def _write_at(
    ports: Ports, actor: Actor, scope: Scope, key: str, content: bytes, writing: ItemWriteOptions
) -> StoredItem:
    path = item_path(key)
    creator = writing.by or actor.agent or actor.name
    for _ in range(_ATTEMPTS):
        current = await _current(ports, scope, path)
        with _speaking_of(key):
            writing.condition.check(path, current)
        if current is None:
            seen, type = WriteCondition(absent=True), item_type(creator)
        else:
            was = item_of(current.head, current.etag)
            seen, type = as_read(was.version), item_type(was.created_by, was.created_at)
        intent = WriteOptions(
            seen, type, writing.why or f"write {key}", writing.run, writing.receipt
        )
        try:
            with _speaking_of(key):
                writer = _ItemWriter(ports, (scope,), path, actor, intent, key)
                written = await writer.put(content)
        except WorkspaceConflict:
            continue
        item = item_of(written.file.head, written.file.etag)
        return StoredItem(item, written.content.decode(), tuple(written.redacted.warned))
    raise Busy(f"the item {key!a} is being written by many others")


async def _current(ports: Ports, scope: Scope, path: Path) -> File | None:
    return resolve(path, await ports.trees.read((scope,), (path,)))


def _etag(file: File | None) -> str:
    assert file
    return file.etag


@contextmanager
def _speaking_of(key: str) -> Iterator[None]:
    """Tell of an item by its key what is told of a file by its path."""
    try:
        yield
    except WorkspaceConflict as stale:
        now = stale.current_version
        is_now = f"it is at version {now}" if now else "there is none"
        raise WorkspaceConflict(f"the item {key!a} is not as it was read: {is_now}", now) from None
    except NotFound:
        raise NotFound(f"there is no item {key!a}") from None
    except Busy:
        raise Busy(f"the item {key!a} is being written by many others") from None
    except WorkspaceTooLarge as full:
        if "maxFiles" not in full.details:
            raise
        raise WorkspaceTooLarge(f"there may be {MOST} items", maxItems=MOST) from None
