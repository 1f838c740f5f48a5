"""What every Blobs must do: bytes by their digest, checked whenever they are read."""

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
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Digest, digest
from carrel.core.store.tree import Blob, Entry, Write
from carrel.ports import CorruptContent

pytestmark = pytest.mark.anyio

SMALL, LARGE = b"small", b"large " * 40_000
BODIES = [b"", SMALL, b"\x00\xff\n\r\n", LARGE]


async def stored(ports: Ports, content: bytes) -> Blob:
    """The blob as one reads it back from a tree."""
    [kept] = await ports.blobs.put([content])
    await ports.trees.commit([commit(Write(AGENT, SOUL, Entry(kept)))])
    [tree] = await ports.trees.read([AGENT], [SOUL])
    entry = tree.entry(SOUL)
    assert entry
    return entry.blob


async def test_a_blob_comes_for_each_content_in_order(ports: Ports) -> None:
    blobs = await ports.blobs.put([SMALL, LARGE, b"", SMALL])

    assert blobs == tuple(Blob(digest(c), len(c)) for c in (SMALL, LARGE, b"", SMALL))
    assert await ports.blobs.put([]) == ()


@pytest.mark.parametrize("content", BODIES, ids=["empty", "small", "binary", "large"])
async def test_what_is_put_can_be_got_before_and_after_the_commit(
    ports: Ports, content: bytes
) -> None:
    [kept] = await ports.blobs.put([content])
    assert await ports.blobs.get([kept]) == {digest(content): content}

    found = await stored(ports, content)

    assert found == kept
    assert await ports.blobs.get([found]) == {digest(content): content}


async def test_many_are_got_at_once(ports: Ports) -> None:
    contents = [*BODIES, *[f"text {n}".encode() for n in range(200)]]
    blobs = await ports.blobs.put(contents)
    names = [f"{n}.md" for n in range(len(blobs))]
    writes = [
        Write(AGENT, type(SOUL)(name), Entry(blob)) for name, blob in zip(names, blobs, strict=True)
    ]
    [outcome] = await ports.trees.commit([commit(*writes)])
    assert len(assert_applied(outcome).heads) == len(contents)

    [tree] = await ports.trees.read([AGENT])
    found = [head.entry.blob for head in tree.heads.values() if head.entry]

    assert await ports.blobs.get(found) == {digest(content): content for content in contents}
    assert await ports.blobs.get([]) == {}


async def test_the_same_bytes_in_two_places_are_got_by_either(ports: Ports) -> None:
    first = await stored(ports, SMALL)
    await put_text(ports, SMALL.decode(), TEMPLATE, RULES)
    [tree] = await ports.trees.read([TEMPLATE])
    [head] = tree.heads.values()
    assert head.entry

    assert head.entry.blob == first
    assert await ports.blobs.get([first, head.entry.blob]) == {first.digest: SMALL}


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
async def test_bytes_that_are_not_what_their_digest_says_are_never_served(
    ports: Ports, content: bytes
) -> None:
    found = await stored(ports, content)
    await put_text(ports, "sound", path=RULES)
    await ports.tamper(found.digest)

    with pytest.raises(CorruptContent, match=found.digest):
        await ports.blobs.get([found])
    [tree] = await ports.trees.read([AGENT], [RULES])
    sound = tree.entry(RULES)
    assert sound
    assert await ports.blobs.get([sound.blob]) == {digest(b"sound"): b"sound"}
    with pytest.raises(CorruptContent, match=found.digest):
        await ports.blobs.get([sound.blob, found])


async def test_bytes_that_are_gone_are_said_to_be_gone(ports: Ports) -> None:
    never: Digest = digest(b"never put")

    with pytest.raises(CorruptContent, match=never):
        await ports.blobs.get([Blob(never, 9)])


async def test_bytes_that_a_commit_refers_to_outlive_the_tidying(ports: Ports) -> None:
    await stored(ports, LARGE)
    run = await start_run(ports, "run_1")
    await put_text(ports, "new", max_versions=1)
    await put_text(ports, "newer", max_versions=1)

    await ports.upkeep.collect(NOW * 2, grace_ms=0, event_retention_ms=0)

    assert await read_texts(ports, AGENT) == {"SOUL.md": "newer"}
    assert await read_texts(ports, run.snapshot[0]) == {"SOUL.md": LARGE.decode()}
