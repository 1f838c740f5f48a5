"""Examining a store and collecting what nothing refers to, while others write."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.empty_stores import (
    AGENT,
    HOUR,
    LARGE,
    NOW,
    SOUL,
    OpenedStore,
    Stores,
    check_findings,
    commit,
    fill,
    keep_only,
    put_text,
    rows_of,
)
from tests.support.services.files import fresh
from tests.support.tenants import create_tenant

from carrel.actions.accounts import secrets, vault_check
from carrel.actions.maintenance.integrity import check_secrets, collect, merge_by_key
from carrel.adapters.aes_vault import AesGcmVault
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.sqlite import open_store
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.tables import KEY_LENGTHS
from carrel.core.store.tree import Entry, Write
from carrel.ports import Ports, StoreSnapshot

pytestmark = pytest.mark.anyio

BODY = b"a large body " * 10_000
NAME = digest(BODY)


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


class ClockedBlobStore(DirectoryBlobStore):
    """Blob directory whose files carry the test's time instead of the machine's."""

    def __init__(self, root: File, clock: Clock) -> None:
        super().__init__(root)
        self._directory, self._clock = root, clock

    async def put(self, digest: Digest, content: bytes) -> None:
        await super().put(digest, content)
        self._stamp([digest])

    async def discard(self, digests: Collection[Digest]) -> None:
        await super().discard(digests)
        self._stamp(digests)

    async def restore(self, digests: Collection[Digest]) -> None:
        await super().restore(digests)
        self._stamp(digests)

    def _stamp(self, digests: Collection[Digest]) -> None:
        nanoseconds = self._clock() * 1_000_000
        for name in digests:
            for file in self._directory.rglob(name.removeprefix("sha256:")):
                os.utime(file, ns=(nanoseconds, nanoseconds))


@pytest.fixture
def objects(clock: Clock, tmp_path: File) -> ClockedBlobStore:
    return ClockedBlobStore(tmp_path / "blobs", clock)


@pytest.fixture(params=["sqlite", "postgres"])
async def shelter(
    request: pytest.FixtureRequest, stores: Stores, objects: ClockedBlobStore
) -> AsyncIterator[OpenedStore]:
    async with stores.open(request.param, objects) as opened:
        yield opened


async def gc(shelter: OpenedStore, now: int) -> dict[str, int]:
    """What was collected, as far as it was anything."""
    counts = await collect(
        shelter.store.maintenance,
        shelter.objects,
        now=now,
        grace=HOUR,
        event_retention_ms=90 * 24 * HOUR,
    )
    return {what: count for what, count in counts.items() if count}


async def test_a_store_with_something_of_everything_is_clean(shelter: OpenedStore) -> None:
    await fill(shelter)

    assert await check_findings(shelter) == []


async def test_large_bytes_that_are_gone_or_others_are_found(
    shelter: OpenedStore, objects: ClockedBlobStore
) -> None:
    for path, text in (("a.txt", "a" * 100_000), ("b.txt", "b" * 100_000)):
        await put_text(shelter, text, Path(path))
    gone, other = digest(b"a" * 100_000), digest(b"b" * 100_000)
    await objects.discard([gone, other])
    await objects.delete([gone, other])
    await objects.put(other, b"c" * 100_000)

    assert sorted(await check_findings(shelter)) == sorted(
        [
            f"error: object {gone}: its content is missing",
            f"error: object {other}: its content does not match its digest",
        ]
    )


async def test_large_bytes_that_nothing_refers_to_are_a_warning_once_they_are_old(
    shelter: OpenedStore, objects: ClockedBlobStore
) -> None:
    await objects.put(NAME, BODY)

    assert await check_findings(shelter, now=NOW + HOUR) == []
    assert await check_findings(shelter, now=NOW + HOUR + 1) == [
        f"warning: objects: 1 are unreferenced, {len(BODY)} bytes in total; carrel gc deletes them"
    ]


async def test_a_collection_takes_what_nothing_refers_to_and_the_doctor_is_content(
    shelter: OpenedStore,
) -> None:
    await keep_only(shelter, 1)
    for n in range(3):
        await put_text(shelter, f"text {n}", max_versions=1)
    later = NOW + 2 * HOUR
    assert any(
        "content: 2 rows are unreferenced" in text
        for text in await check_findings(shelter, now=later)
    )

    assert await gc(shelter, later) == {"contents": 2}

    assert await check_findings(shelter, now=later) == []
    assert [row[2] for row in (await rows_of(shelter))["version"]] == [3]


async def test_large_bytes_go_in_two_steps(
    shelter: OpenedStore, objects: ClockedBlobStore, clock: Clock
) -> None:
    await objects.put(NAME, BODY)
    await put_text(shelter, "b" * 100_000, LARGE)

    assert await gc(shelter, NOW + HOUR) == {}
    clock.time = NOW + HOUR + 1
    assert await gc(shelter, clock.time) == {"discarded": 1}
    assert await objects.get(NAME) == BODY
    assert await gc(shelter, clock.time + HOUR) == {}
    assert await gc(shelter, clock.time + HOUR + 1) == {"objects": 1}
    assert await objects.get(NAME) is None
    assert await check_findings(shelter, now=clock.time) == []


async def test_a_writer_that_found_its_bytes_just_before_they_were_discarded_has_them(
    shelter: OpenedStore, objects: ClockedBlobStore, clock: Clock
) -> None:
    await objects.put(NAME, BODY)
    clock.time = NOW + 2 * HOUR
    [blob] = await shelter.store.blobs.put([BODY])
    await objects.discard([NAME])
    assert [name async for name, _, _ in objects.list_blobs()] == []

    await commit(shelter, Write(AGENT, LARGE, Entry(blob)), at=clock.time)

    assert await shelter.store.blobs.get([blob]) == {NAME: BODY}
    assert await check_findings(shelter, now=clock.time) == []
    clock.time += 2 * HOUR
    assert await gc(shelter, clock.time) == {"restored": 1}
    assert [name async for name, _, _ in objects.list_blobs()] == [NAME]
    assert await gc(shelter, clock.time + 9 * HOUR) == {}
    assert await shelter.store.blobs.get([blob]) == {NAME: BODY}


async def test_what_is_held_by_a_frozen_view_can_be_read_after_a_collection(
    shelter: OpenedStore, objects: ClockedBlobStore, clock: Clock
) -> None:
    await put_text(shelter, BODY.decode(), LARGE, max_versions=1)
    await put_text(shelter, "small", LARGE, max_versions=1)
    async with shelter.store.maintenance.snapshot():
        clock.time = NOW + 2 * HOUR
        assert await gc(shelter, clock.time) == {"contents": 1, "discarded": 1}

        assert await objects.get(NAME) == BODY


async def test_a_secret_that_the_key_of_the_vault_does_not_open_is_found(ports: Ports) -> None:
    async def problems(key: bytes) -> list[str]:
        findings = FindingList()
        await check_secrets(replace(ports, vault=AesGcmVault(key)), findings)
        return [f"{each.subject}: {each.text}" for each in findings.items]

    _, owner = await create_tenant(ports)
    await secrets.put(ports, owner, "sec_1", "open sesame")
    assert await problems(bytes(32)) == []
    assert await problems(b"x" * 32) == [
        f"secret sec_1 of {owner.tenant}: the vault key does not open it"
    ]

    assert await vault_check.verify_vault_key(ports)
    assert await problems(b"x" * 32) == ["vault: its key is not the one this store was sealed with"]


async def test_rows_are_woven_by_their_keys_however_they_are_batched() -> None:
    rows: dict[str, list[tuple[Any, ...]]] = {
        "scope": [(n,) for n in range(1, 9)],
        "entry": [(n, p) for n in range(1, 9, 2) for p in "abc"],
        "version": [(n, p, v) for n in (3, 5) for p in "ab" for v in range(4)],
    }

    class Batches(StoreSnapshot):
        async def count(self, table: str) -> int:
            return len(rows[table])

        async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Sequence[Any]]:
            size = len(table) - 3
            for start in range(0, len(rows[table]), size):
                yield rows[table][start : start + size]

    woven = [tagged async for some in merge_by_key(Batches(), tuple(rows)) for tagged in some]

    everything = [(table, row) for table, some in rows.items() for row in some]
    assert woven == sorted(everything, key=lambda tagged: tagged[1][: KEY_LENGTHS[tagged[0]]])


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "commit", "drop", "gc", "wait"]), st.integers(0, 2)),
    max_size=40,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_what_is_committed_within_the_grace_of_its_put_can_always_be_read(
    steps: Sequence[tuple[str, int]],
) -> None:
    """Three large bodies, each put, committed and dropped at will, while collections come by."""

    async def live() -> None:
        clock = Clock()
        with TemporaryDirectory() as directory:
            objects = ClockedBlobStore(File(directory) / "objects", clock)
            async with open_store(fresh(File(directory) / "carrel.db"), objects=objects) as store:
                await _live(OpenedStore(store, objects), clock, steps)

    asyncio.run(live())


async def _live(shelter: OpenedStore, clock: Clock, steps: Sequence[tuple[str, int]]) -> None:
    put: dict[int, tuple[Any, int]] = {}
    for what, number in steps:
        body = f"{number}" * 70_000
        if what == "put":
            [blob] = await shelter.store.blobs.put([body.encode()])
            put[number] = (blob, clock.time)
        elif what == "commit" and number in put:
            blob, at = put.pop(number)
            if clock.time - at <= HOUR:
                write = Write(AGENT, Path(f"{number}.txt"), Entry(blob))
                await commit(shelter, write, at=clock.time, max_versions=1)
        elif what == "drop":
            await put_text(shelter, None, Path(f"{number}.txt"), at=clock.time, max_versions=1)
        elif what == "gc":
            await gc(shelter, clock.time)
        elif what == "wait":
            clock.time += HOUR // 2 + 1
        [tree] = await shelter.store.trees.read([AGENT])
        blobs = [head.entry.blob for head in tree.heads.values() if head.entry]
        assert set(await shelter.store.blobs.get(blobs)) == {blob.digest for blob in blobs}


async def test_a_collection_leaves_the_newest_and_what_runs_see(shelter: OpenedStore) -> None:
    await fill(shelter)
    before = await rows_of(shelter)

    await gc(shelter, NOW + 2 * HOUR)

    after = await rows_of(shelter)
    assert {t: r for t, r in after.items() if t != "receipt"} == {
        t: r for t, r in before.items() if t != "receipt"
    }
    assert (await shelter.store.trees.read([AGENT], [SOUL]))[0].entry(SOUL)
