"""Memories as they are read: found by id, with their creation times and contents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from carrel.actions.blob_contents import load_contents
from carrel.actions.memory_stores.creation_times import load_creation_times
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.memory_stores.memory_listing import MemoryListing, build_listing
from carrel.core.memory_stores.memory_paths import is_memory
from carrel.core.memory_stores.object_ids import memory_id, parse_memory_id
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Head
from carrel.ports import CorruptContent, Ports


class StoredMemory(Struct, frozen=True):
    """A memory; its content is None if it was not asked for."""

    scope: Scope
    head: Head
    created_at: TimestampMs
    content: str | None = None

    @property
    def id(self) -> str:
        return memory_id(self.head.file_id(self.scope))

    @property
    def blob(self) -> Blob:
        assert self.head.entry is not None
        return self.head.entry.blob


async def load_listing(ports: Ports, scope: Scope) -> MemoryListing:
    """Load all files of a store, cached by its revision."""
    [revision] = await ports.trees.revisions((scope,))
    cached: MemoryListing | None = ports.listing_cache.get((ports.store, scope))
    if cached is not None and cached.tree.revision == revision:
        return cached
    [tree] = await ports.trees.read((scope,))
    listing = build_listing(tree)
    ports.listing_cache.put((ports.store, scope), listing, len(listing.paths) + 1)
    return listing


async def load_head(ports: Ports, scope: Scope, memory: str) -> Head:
    """Find a memory where it was last, or else in a listing. Raises NotFound."""
    file_id = parse_memory_id(memory)
    path = _last_path(ports, scope, file_id)
    if path is not None:
        [tree] = await ports.trees.read((scope,), (path,))
        head = tree.heads.get(path)
        if head is not None and is_memory(head) and head.file_id(scope) == file_id:
            return head
    head = (await load_listing(ports, scope)).find(file_id)
    if head is None:
        raise NotFound(f"no such memory: {memory}")
    remember_path(ports, scope, head)
    return head


def _last_path(ports: Ports, scope: Scope, file_id: str) -> Path | None:
    """Path where a memory was, maybe outdated."""
    path: Path | None = ports.listing_cache.get((ports.store, scope, file_id))
    if path is None:
        listing: MemoryListing | None = ports.listing_cache.get((ports.store, scope))
        head = None if listing is None else listing.find(file_id)
        path = None if head is None else head.path
    return path


def remember_path(ports: Ports, scope: Scope, head: Head) -> None:
    ports.listing_cache.put((ports.store, scope, head.file_id(scope)), head.path)


async def load_memories(
    ports: Ports, scope: Scope, heads: Sequence[Head], *, with_content: bool
) -> list[StoredMemory]:
    """Load creation times and, if asked for, contents; what is no text is left out.

    Raises CorruptContent.
    """
    created = await load_creation_times(ports, scope, heads)
    texts = await load_texts(ports, map(blob_of, heads)) if with_content else {}
    return [
        StoredMemory(scope, head, created[head.path], texts.get(blob_of(head)))
        for head in heads
        if not with_content or blob_of(head) in texts
    ]


async def load_texts(ports: Ports, blobs: Iterable[Blob]) -> Mapping[Blob, str]:
    """Load contents that are UTF-8. Raises CorruptContent."""
    requested = set(blobs)
    contents = await load_contents(ports, requested)
    texts: dict[Blob, str] = {}
    for blob in requested:
        content = contents[blob.digest]
        if isinstance(content, CorruptContent):
            raise content
        try:
            texts[blob] = content.decode()
        except UnicodeDecodeError:
            continue
    return texts


def blob_of(head: Head) -> Blob:
    assert head.entry is not None
    return head.entry.blob
