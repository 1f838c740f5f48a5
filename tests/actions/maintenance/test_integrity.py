"""Store checks and garbage collection, also during writes."""

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
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry
from carrel.ports import Ports, TableRows

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
    """Blob directory with the file times of the test clock."""

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
async def backend(
    request: pytest.FixtureRequest, stores: Stores, objects: ClockedBlobStore
) -> AsyncIterator[OpenedStore]:
    async with stores.open(request.param, objects) as opened:
        yield opened


async def run_collect(backend: OpenedStore, now: int) -> dict[str, int]:
    """The non-zero counts of a collection."""
    counts = await collect(
        backend.store.maintenance,
        backend.objects,
        now=now,
        grace=HOUR,
        event_retention_ms=90 * 24 * HOUR,
    )
    return {kind: count for kind, count in counts.items() if count}


async def test_a_filled_store_is_clean(backend: OpenedStore) -> None:
    await fill(backend)

    assert await check_findings(backend) == []


async def test_missing_and_changed_large_blobs_are_reported(
    backend: OpenedStore, objects: ClockedBlobStore
) -> None:
    for path, text in (("a.txt", "a" * 100_000), ("b.txt", "b" * 100_000)):
        await put_text(backend, text, Path(path))
    missing, changed = digest(b"a" * 100_000), digest(b"b" * 100_000)
    await objects.discard([missing, changed])
    await objects.delete([missing, changed])
    await objects.put(changed, b"c" * 100_000)

    assert sorted(await check_findings(backend)) == sorted(
        [
            f"error: object {missing}: its content is missing",
            f"error: object {changed}: its content does not match its digest",
        ]
    )


async def test_unreferenced_large_blobs_are_a_warning_after_the_grace_period(
    backend: OpenedStore, objects: ClockedBlobStore
) -> None:
    await objects.put(NAME, BODY)

    assert await check_findings(backend, now=NOW + HOUR) == []
    assert await check_findings(backend, now=NOW + HOUR + 1) == [
        f"warning: objects: 1 are unreferenced, {len(BODY)} bytes in total; carrel gc deletes them"
    ]


async def test_a_collection_removes_unreferenced_content_and_the_check_is_clean(
    backend: OpenedStore,
) -> None:
    await keep_only(backend, 1)
    for n in range(3):
        await put_text(backend, f"text {n}", max_versions=1)
    later = NOW + 2 * HOUR
    assert any(
        "content: 2 rows are unreferenced" in text
        for text in await check_findings(backend, now=later)
    )

    assert await run_collect(backend, later) == {"contents": 2}

    assert await check_findings(backend, now=later) == []
    assert [row[2] for row in (await rows_of(backend))["version"]] == [3]


async def test_large_blobs_are_discarded_first_and_deleted_later(
    backend: OpenedStore, objects: ClockedBlobStore, clock: Clock
) -> None:
    await objects.put(NAME, BODY)
    await put_text(backend, "b" * 100_000, LARGE)

    assert await run_collect(backend, NOW + HOUR) == {}
    clock.time = NOW + HOUR + 1
    assert await run_collect(backend, clock.time) == {"discarded": 1}
    assert await objects.get(NAME) == BODY
    assert await run_collect(backend, clock.time + HOUR) == {}
    assert await run_collect(backend, clock.time + HOUR + 1) == {"objects": 1}
    assert await objects.get(NAME) is None
    assert await check_findings(backend, now=clock.time) == []


async def test_a_commit_of_a_blob_discarded_at_the_same_time_can_be_read(
    backend: OpenedStore, objects: ClockedBlobStore, clock: Clock
) -> None:
    await objects.put(NAME, BODY)
    clock.time = NOW + 2 * HOUR
    [blob] = await backend.store.blobs.put([BODY])
    await objects.discard([NAME])
    assert [name async for name, _, _ in objects.list_blobs()] == []

    await commit(backend, Write(AGENT, LARGE, Entry(blob)), at=clock.time)

    assert await backend.store.blobs.get([blob]) == {NAME: BODY}
    assert await check_findings(backend, now=clock.time) == []
    clock.time += 2 * HOUR
    assert await run_collect(backend, clock.time) == {"restored": 1}
    assert [name async for name, _, _ in objects.list_blobs()] == [NAME]
    assert await run_collect(backend, clock.time + 9 * HOUR) == {}
    assert await backend.store.blobs.get([blob]) == {NAME: BODY}


async def test_a_blob_in_an_open_snapshot_is_readable_after_a_collection(
    backend: OpenedStore, objects: ClockedBlobStore, clock: Clock
) -> None:
    await put_text(backend, BODY.decode(), LARGE, max_versions=1)
    await put_text(backend, "small", LARGE, max_versions=1)
    async with backend.store.maintenance.snapshot():
        clock.time = NOW + 2 * HOUR
        assert await run_collect(backend, clock.time) == {"contents": 1, "discarded": 1}

        assert await objects.get(NAME) == BODY


async def test_a_secret_that_the_vault_key_does_not_open_is_reported(ports: Ports) -> None:
    async def problems(key: bytes) -> list[str]:
        findings = FindingList()
        await check_secrets(replace(ports, vault=AesGcmVault(key)), findings)
        return [f"{finding.subject}: {finding.text}" for finding in findings.items]

    _, owner = await create_tenant(ports)
    await secrets.put(ports, owner, "sec_1", "open sesame")
    assert await problems(bytes(32)) == []
    assert await problems(b"x" * 32) == [
        f"secret sec_1 of {owner.tenant}: the vault key does not open it"
    ]

    assert await vault_check.verify_vault_key(ports)
    assert await problems(b"x" * 32) == ["vault: its key does not match this store"]


async def test_rows_are_merged_by_key_in_any_batching() -> None:
    rows: dict[str, list[tuple[Any, ...]]] = {
        "scope": [(n,) for n in range(1, 9)],
        "entry": [(n, p) for n in range(1, 9, 2) for p in "abc"],
        "version": [(n, p, v) for n in (3, 5) for p in "ab" for v in range(4)],
    }

    class BatchedSnapshot(TableRows):
        async def count(self, table: str) -> int:
            return len(rows[table])

        async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Sequence[Any]]:
            size = len(table) - 3
            for start in range(0, len(rows[table]), size):
                yield rows[table][start : start + size]

    merged = [
        item async for batch in merge_by_key(BatchedSnapshot(), tuple(rows)) for item in batch
    ]

    all_rows = [(table, row) for table, batch in rows.items() for row in batch]
    assert merged == sorted(all_rows, key=lambda item: item[1][: KEY_LENGTHS[item[0]]])


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "commit", "drop", "gc", "wait"]), st.integers(0, 2)),
    max_size=40,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_content_committed_within_its_grace_period_is_always_readable(
    steps: Sequence[tuple[str, int]],
) -> None:
    """Three large blobs are put, committed and deleted in any order during collections."""

    async def run() -> None:
        clock = Clock()
        with TemporaryDirectory() as directory:
            objects = ClockedBlobStore(File(directory) / "objects", clock)
            async with open_store(fresh(File(directory) / "carrel.db"), objects=objects) as store:
                await _apply_steps(OpenedStore(store, objects), clock, steps)

    asyncio.run(run())


async def _apply_steps(
    backend: OpenedStore, clock: Clock, steps: Sequence[tuple[str, int]]
) -> None:
    put: dict[int, tuple[Any, int]] = {}
    for action, number in steps:
        body = f"{number}" * 70_000
        if action == "put":
            [blob] = await backend.store.blobs.put([body.encode()])
            put[number] = (blob, clock.time)
        elif action == "commit" and number in put:
            blob, put_at = put.pop(number)
            if clock.time - put_at <= HOUR:
                write = Write(AGENT, Path(f"{number}.txt"), Entry(blob))
                await commit(backend, write, at=clock.time, max_versions=1)
        elif action == "drop":
            await put_text(backend, None, Path(f"{number}.txt"), at=clock.time, max_versions=1)
        elif action == "gc":
            await run_collect(backend, clock.time)
        elif action == "wait":
            clock.time += HOUR // 2 + 1
        [tree] = await backend.store.trees.read([AGENT])
        blobs = [head.entry.blob for head in tree.heads.values() if head.entry]
        assert set(await backend.store.blobs.get(blobs)) == {blob.digest for blob in blobs}


async def test_a_collection_keeps_the_newest_versions_and_those_of_runs(
    backend: OpenedStore,
) -> None:
    await fill(backend)
    before = await rows_of(backend)

    await run_collect(backend, NOW + 2 * HOUR)

    after = await rows_of(backend)
    assert {t: r for t, r in after.items() if t != "idempotency_key"} == {
        t: r for t, r in before.items() if t != "idempotency_key"
    }
    assert (await backend.store.trees.read([AGENT], [SOUL]))[0].entry(SOUL)
