"""Memories: files of a shared workspace, named by ids that stay when they are renamed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from carrel.actions.files.commit_results import ChangeResult
from carrel.actions.files.file_commit import CommitOptions, commit_files
from carrel.actions.memory_stores import stores
from carrel.actions.memory_stores.stored_memories import (
    StoredMemory,
    blob_of,
    load_head,
    load_listing,
    load_memories,
    remember_path,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path, Scope, ScopeKind, digest
from carrel.core.memory_stores.memory_listing import (
    ListItem,
    MemoryPrefix,
    find_occupant,
    item_position,
    list_items,
)
from carrel.core.memory_stores.memory_paths import (
    MAX_CONTENT_BYTES,
    memory_path,
    parse_memory_path,
    parse_path_prefix,
)
from carrel.core.memory_stores.object_ids import memory_id
from carrel.core.memory_stores.store_fields import MAX_MEMORIES
from carrel.core.overlay.compose import file_etag
from carrel.core.overlay.file_changes import ChangeKind, FileChange
from carrel.core.overlay.write_condition import WriteCondition
from carrel.core.store.entry import Head
from carrel.core.store.idempotency import IdempotencyKey
from carrel.ports import Ports


class MemoryPatch(Struct, frozen=True):
    """Change of a memory; None keeps what is there."""

    content: str | None = None
    path: str | None = None
    expected_sha256: str | None = None


class MemoryQuery(Struct, frozen=True):
    """Which memories a page has."""

    path_prefix: str | None = None
    children_only: bool = False
    after: str = ""
    limit: int = 20
    with_content: bool = False


class MemoryPage(Struct, frozen=True):
    items: Sequence[StoredMemory | MemoryPrefix]
    next: str | None
    """Position of the last item, if there are more."""


async def get(
    ports: Ports, actor: Actor, store: str, memory: str, *, with_content: bool
) -> StoredMemory:
    """Get a memory. Raises NotFound."""
    scope = await stores.load_scope(ports, actor, store)
    head = await load_head(ports, scope, memory)
    memories = await load_memories(ports, scope, [head], with_content=with_content)
    if not memories:
        raise NotFound(f"no such memory: {memory}")
    return memories[0]


async def list_memories(ports: Ports, actor: Actor, store: str, query: MemoryQuery) -> MemoryPage:
    """List memories by path. Raises NotFound and ValidationError."""
    scope = await stores.load_scope(ports, actor, store)
    prefix = parse_path_prefix(query.path_prefix)
    listing = await load_listing(ports, scope)
    items: list[ListItem] = []
    for item in list_items(listing, prefix, query.after, children_only=query.children_only):
        items.append(item)
        if len(items) > query.limit:
            break
    has_more = len(items) > query.limit
    items = items[: query.limit]
    heads = [item for item in items if isinstance(item, Head)]
    memories = await load_memories(ports, scope, heads, with_content=query.with_content)
    by_path = {memory.head.path: memory for memory in memories}
    rows = (item if isinstance(item, MemoryPrefix) else by_path.get(item.path) for item in items)
    return MemoryPage(
        [row for row in rows if row is not None],
        item_position(items[-1]) if has_more else None,
    )


@retry_on_conflict()
async def create(
    ports: Ports,
    actor: Actor,
    store: str,
    path: str,
    content: str | None,
    *,
    idempotency_key: IdempotencyKey | None = None,
) -> StoredMemory:
    """Create a memory. Raises NotFound, ValidationError, WorkspaceTooLarge, and Conflict if the
    path is taken."""
    target, encoded = parse_memory_path(path), _encode_content(content or "")
    scope = await _writable_scope(ports, actor, store)
    await _require_free(ports, scope, target)
    change = FileChange(
        ChangeKind.PUT, target, content=encoded, condition=WriteCondition(absent=True)
    )
    return await _commit(ports, actor, scope, change, idempotency_key)


@retry_on_conflict()
async def update(
    ports: Ports,
    actor: Actor,
    store: str,
    memory: str,
    patch: MemoryPatch,
    *,
    idempotency_key: IdempotencyKey | None = None,
) -> StoredMemory:
    """Replace the content of a memory, rename it, or both in one commit.

    A memory that is so already stays as it is, whatever was expected. Raises NotFound,
    ValidationError, WorkspaceConflict for another content than was expected, and Conflict if the
    new path is taken.
    """
    actor.require(Permission.WORKSPACE_READ)
    path = None if patch.path is None else parse_memory_path(patch.path)
    content = None if patch.content is None else _encode_content(patch.content)
    scope = await _writable_scope(ports, actor, store)
    head = await load_head(ports, scope, memory)
    is_renamed = path not in (None, head.path)
    if not is_renamed and (content is None or digest(content) == blob_of(head).digest):
        return (await load_memories(ports, scope, [head], with_content=False))[0]
    _check_digest(head, patch.expected_sha256)
    condition = _unchanged(scope, head)
    if path is None or not is_renamed:
        change = FileChange(ChangeKind.PUT, head.path, content=content, condition=condition)
    else:
        await _require_free(ports, scope, path, head.path)
        change = FileChange(
            *(ChangeKind.MOVE, path, head.path, content),
            condition=WriteCondition(absent=True),
            source_condition=condition,
        )
    return await _commit(ports, actor, scope, change, idempotency_key)


@retry_on_conflict()
async def delete(
    ports: Ports,
    actor: Actor,
    store: str,
    memory: str,
    *,
    expected_sha256: str | None = None,
    idempotency_key: IdempotencyKey | None = None,
) -> None:
    """Delete a memory. Raises NotFound, and WorkspaceConflict for another content."""
    scope = await stores.load_scope(ports, actor, store)
    head = await load_head(ports, scope, memory)
    _check_digest(head, expected_sha256)
    change = FileChange(ChangeKind.DELETE, head.path, condition=_unchanged(scope, head))
    await _apply(ports, actor, scope, change, idempotency_key)


async def _writable_scope(ports: Ports, actor: Actor, store: str) -> Scope:
    record = await stores.get_writable(ports, actor, store)
    return Scope(record.tenant, ScopeKind.WORKSPACE, record.id)


def _encode_content(content: str) -> bytes:
    try:
        encoded = content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    if len(encoded) > MAX_CONTENT_BYTES:
        raise ValidationError(f"content must not be longer than {MAX_CONTENT_BYTES} bytes")
    return encoded


def _check_digest(head: Head, expected_sha256: str | None) -> None:
    """Raise WorkspaceConflict if the content is another one than was expected."""
    if expected_sha256 not in (None, blob_of(head).digest.removeprefix("sha256:")):
        raise WorkspaceConflict("the content_sha256 of the memory is another one", head.version)


def _unchanged(scope: Scope, head: Head) -> WriteCondition:
    """Condition that the memory is as it was read, checked by the commit."""
    return WriteCondition(frozenset({file_etag(head.version, scope, single_layer=True)}))


async def _require_free(ports: Ports, scope: Scope, path: Path, moved: Path | None = None) -> None:
    """Raise Conflict if there is a memory at the path, above or below it."""
    [named] = await ports.trees.read((scope,), (*path.parents, path))
    [below] = await ports.trees.read((scope,), prefix=f"{path.text}/")
    occupant = find_occupant(path, named, below, moved)
    if occupant is None:
        return
    details = {"path": memory_path(occupant)}
    head = named.heads.get(occupant) or below.heads.get(occupant)
    if head is not None and head.entry is not None:
        details["memoryId"] = memory_id(head.file_id(scope))
    raise Conflict(f"{memory_path(path)} is not free: {memory_path(occupant)} exists", **details)


async def _commit(
    ports: Ports,
    actor: Actor,
    scope: Scope,
    change: FileChange,
    idempotency_key: IdempotencyKey | None,
) -> StoredMemory:
    result = await _apply(ports, actor, scope, change, idempotency_key)
    assert result.file is not None
    remember_path(ports, scope, result.file.head)
    [memory] = await load_memories(ports, scope, [result.file.head], with_content=False)
    return memory


async def _apply(
    ports: Ports,
    actor: Actor,
    scope: Scope,
    change: FileChange,
    idempotency_key: IdempotencyKey | None,
) -> ChangeResult:
    """Commit a change. Raises Busy if it must be decided again."""
    options = CommitOptions(
        f"{change.kind} {change.subject}",
        idempotency_key=idempotency_key,
        max_files=MAX_MEMORIES,
    )
    try:
        result = await commit_files(ports, (scope,), actor, [change], options)
    except (WorkspaceConflict, Conflict) as conflict:
        raise Busy.with_conflicts(str(change.subject)) from conflict
    return result.changes[0]
