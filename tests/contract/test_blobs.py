"""Contract of BlobStore: content by digest, verified on every read."""

from __future__ import annotations

import pytest
from tests.support.commits import (
    AGENT,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    assert_applied,
    commit,
    put_text,
    read_texts,
    start_run,
)
from tests.support.contract_stores import LARGE_BLOB_STORES, Ports

from carrel.core.identifiers import Digest, digest
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry
from carrel.ports import CorruptContent

pytestmark = pytest.mark.anyio
stores = LARGE_BLOB_STORES

SMALL, LARGE = b"small", b"large " * 40_000
BODIES = [b"", SMALL, b"\x00\xff\n\r\n", LARGE]


async def store_and_read(ports: Ports, content: bytes) -> Blob:
    """The blob as read back from a tree."""
    [blob] = await ports.blobs.put([content])
    await ports.trees.commit([commit(Write(AGENT, SOUL, Entry(blob)))])
    [tree] = await ports.trees.read([AGENT], [SOUL])
    entry = tree.entry(SOUL)
    assert entry
    return entry.blob


async def test_put_returns_a_blob_for_each_content_in_order(ports: Ports) -> None:
    blobs = await ports.blobs.put([SMALL, LARGE, b"", SMALL])

    assert blobs == tuple(Blob(digest(c), len(c)) for c in (SMALL, LARGE, b"", SMALL))
    assert await ports.blobs.put([]) == ()


@pytest.mark.parametrize("content", BODIES, ids=["empty", "small", "binary", "large"])
async def test_put_content_is_readable_before_and_after_the_commit(
    ports: Ports, content: bytes
) -> None:
    [blob] = await ports.blobs.put([content])
    assert await ports.blobs.get([blob]) == {digest(content): content}

    read_back = await store_and_read(ports, content)

    assert read_back == blob
    assert await ports.blobs.get([read_back]) == {digest(content): content}


@pytest.mark.parametrize("content", BODIES, ids=["empty", "small", "binary", "large"])
async def test_content_put_in_parts_is_readable_whole_and_in_parts(
    ports: Ports, content: bytes
) -> None:
    blob = await ports.blobs.put_parts(iter([content[:7], content[7:]]))
    assert blob == Blob(digest(content), len(content))
    await ports.trees.commit([commit(Write(AGENT, SOUL, Entry(blob)))])
    [tree] = await ports.trees.read([AGENT], [SOUL])
    entry = tree.entry(SOUL)
    assert entry

    for stored in (blob, entry.blob):
        assert await ports.blobs.get([stored]) == {digest(content): content}
        assert b"".join([part async for part in ports.blobs.read_parts(stored)]) == content


async def test_many_blobs_are_read_at_once(ports: Ports) -> None:
    contents = [*BODIES, *[f"text {n}".encode() for n in range(200)]]
    blobs = await ports.blobs.put(contents)
    names = [f"{n}.md" for n in range(len(blobs))]
    writes = [
        Write(AGENT, type(SOUL)(name), Entry(blob)) for name, blob in zip(names, blobs, strict=True)
    ]
    [outcome] = await ports.trees.commit([commit(*writes)])
    assert len(assert_applied(outcome).heads) == len(contents)

    [tree] = await ports.trees.read([AGENT])
    blobs_of_tree = [head.entry.blob for head in tree.heads.values() if head.entry]

    assert await ports.blobs.get(blobs_of_tree) == {
        digest(content): content for content in contents
    }
    assert await ports.blobs.get([]) == {}


async def test_equal_content_in_two_paths_is_the_same_blob(ports: Ports) -> None:
    first = await store_and_read(ports, SMALL)
    await put_text(ports, SMALL.decode(), TEMPLATE, RULES)
    [tree] = await ports.trees.read([TEMPLATE])
    [head] = tree.heads.values()
    assert head.entry

    assert head.entry.blob == first
    assert await ports.blobs.get([first, head.entry.blob]) == {first.digest: SMALL}


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
async def test_content_that_does_not_match_its_digest_is_never_served(
    ports: Ports, content: bytes
) -> None:
    damaged = await store_and_read(ports, content)
    await put_text(ports, "sound", path=RULES)
    await ports.tamper(damaged.digest)

    with pytest.raises(CorruptContent, match=damaged.digest):
        await ports.blobs.get([damaged])
    with pytest.raises(CorruptContent, match=damaged.digest):
        [part async for part in ports.blobs.read_parts(damaged)]
    [tree] = await ports.trees.read([AGENT], [RULES])
    sound = tree.entry(RULES)
    assert sound
    assert await ports.blobs.get([sound.blob]) == {digest(b"sound"): b"sound"}
    with pytest.raises(CorruptContent, match=damaged.digest):
        await ports.blobs.get([sound.blob, damaged])


async def test_missing_content_raises_corrupt_content(ports: Ports) -> None:
    missing: Digest = digest(b"never put")

    with pytest.raises(CorruptContent, match=missing):
        await ports.blobs.get([Blob(missing, 9)])


async def test_content_referenced_by_a_commit_survives_collection(ports: Ports) -> None:
    await store_and_read(ports, LARGE)
    run = await start_run(ports, "run_1")
    await put_text(ports, "new", max_versions=1)
    await put_text(ports, "newer", max_versions=1)

    await ports.upkeep.collect(NOW * 2, grace_ms=0, event_retention_ms=0)

    assert await read_texts(ports, AGENT) == {"SOUL.md": "newer"}
    assert await read_texts(ports, run.snapshot[0]) == {"SOUL.md": LARGE.decode()}
