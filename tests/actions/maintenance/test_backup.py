"""Backups: consistent during writes, verified, portable, and refused when damaged."""

from __future__ import annotations

import asyncio
import base64
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path as File
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.empty_stores import (
    AGENT,
    NOW,
    SOUL,
    TEMPLATE,
    Stores,
    check_findings,
    content,
    fill,
    fill_file,
    put_text,
    read_view,
    restore,
    rows_of,
    take_backup,
)

from carrel.actions.maintenance import archive as archive_module
from carrel.actions.maintenance import backup as maintenance_backup
from carrel.actions.maintenance.archive import ArchiveWriter
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.core.errors import Conflict
from carrel.core.identifiers import Digest, Path
from carrel.core.maintenance.tables import OPTIONAL_TABLES, TABLES
from carrel.core.version import VERSION
from carrel.ports import CorruptContent

pytestmark = pytest.mark.anyio

KINDS = ["sqlite", "postgres"]


@pytest.mark.parametrize("target", KINDS)
async def test_a_backup_without_session_tables_can_be_restored(
    stores: Stores, file: File, target: str
) -> None:
    async with stores.open("sqlite", objects=False) as first:
        await fill(first, sessions=False)
        expected = await read_view(first)
        with file.open("w+b") as opened, closing(ArchiveWriter(opened)) as archive:
            async with first.store.maintenance.snapshot() as snapshot:
                for table in [table for table in TABLES if table not in OPTIONAL_TABLES]:
                    await archive.add_table(table, snapshot.rows(table))
            archive.finish(VERSION, NOW, await first.store.maintenance.migrations(), None)
    async with stores.open(target, objects=False) as second:
        assert await restore(second, file) == []
        assert await read_view(second) == expected


@pytest.mark.parametrize("target", KINDS)
async def test_a_backup_without_the_keys_of_the_audit_can_be_restored(
    stores: Stores, file: File, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {**TABLES, "audit": TABLES["audit"][:-3]}

    async def older_rows(rows: AsyncIterator[Any], columns: int) -> AsyncIterator[Any]:
        async for batch in rows:
            yield [tuple(row)[:columns] for row in batch]

    async with stores.open("sqlite", objects=False) as first:
        await fill(first)
        expected = await read_view(first)
        monkeypatch.setattr(archive_module, "TABLES", older)
        with file.open("w+b") as opened, closing(ArchiveWriter(opened)) as archive:
            async with first.store.maintenance.snapshot() as snapshot:
                for table, columns in older.items():
                    await archive.add_table(table, older_rows(snapshot.rows(table), len(columns)))
            archive.finish(VERSION, NOW, await first.store.maintenance.migrations(), None)
        monkeypatch.undo()
    async with stores.open(target, objects=False) as second:
        assert await restore(second, file) == []
        audit = tuple(replace(entry, action="") for entry in expected["audit"])
        assert await read_view(second) == {**expected, "audit": audit}


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
async def test_a_restored_store_equals_the_original(
    stores: Stores, file: File, source: str, target: str
) -> None:
    async with stores.open(source) as first:
        await fill(first)
        backup = await take_backup(first, file)
        rows, expected = await rows_of(first), await read_view(first)
    async with stores.open(target) as second:
        assert await restore(second, file) == []

        restored = await rows_of(second)
        recomputed = {"counter", "delivery_cursor"}
        assert {t: r for t, r in restored.items() if t not in recomputed} == {
            t: r for t, r in rows.items() if t not in recomputed
        }
        assert await read_view(second) == expected
    assert backup.manifest.tables["version"].rows == len(rows["version"])
    assert backup.manifest.objects == 3
    assert backup.size == len(content(file))


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
async def test_a_restored_store_continues_its_versions_and_events(
    stores: Stores, file: File, source: str, target: str
) -> None:
    async with stores.open(source) as first:
        await fill(first)
        [before] = await first.store.trees.read([AGENT])
        await take_backup(first, file)
    async with stores.open(target) as second:
        await restore(second, file)
        cursor = await second.store.events.latest_cursor()

        head = await put_text(second, "after")
        await put_text(second, "z" * 100_000, path=Path("new.txt"))
        await put_text(second, "elsewhere", scope=TEMPLATE, path=Path("new.md"))

        assert head.version == before.version(SOUL) + 1
        assert head.revision == before.revision + 1
        events = await second.store.events.read_after(cursor)
        assert [event.payload["path"] for event in events] == ["SOUL.md", "new.txt", "new.md"]
        assert await check_findings(second) == []
        again = file.with_name("again.zip")
        await take_backup(second, again)
    async with stores.open(source) as third:
        assert await restore(third, again) == []


@pytest.mark.parametrize("target", KINDS)
async def test_without_a_blob_store_large_content_is_restored_into_the_database(
    stores: Stores, file: File, target: str
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        expected = await read_view(first)
        await take_backup(first, file)
    async with stores.open(target, objects=False) as second:
        assert await restore(second, file) == []
        assert await read_view(second) == expected
        assert await check_findings(second) == []
        await take_backup(second, second_file := file.with_name("second.zip"))
    async with stores.open("sqlite") as third:
        assert await restore(third, second_file) == []
        assert await read_view(third) == expected


@pytest.mark.parametrize("kind", KINDS)
async def test_a_backup_taken_during_writes_is_of_one_moment(
    stores: Stores, file: File, kind: str
) -> None:
    """Each writer writes one file and then another: no backup may have more of the second."""
    async with stores.open(kind) as first:
        await fill(first)
        done = [0] * 8
        warm, stop = asyncio.Event(), asyncio.Event()

        async def write(number: int) -> None:
            while not stop.is_set():
                text = f"{done[number] + 1} " + "x" * (70_000 if done[number] % 5 == 0 else 10)
                for name in ("left", "right"):
                    await put_text(first, text, path=Path(f"{name}/{number}.md"), max_versions=100)
                done[number] += 1
                if min(done) >= 3:
                    warm.set()

        writers = [asyncio.create_task(write(number)) for number in range(8)]
        await warm.wait()
        before = list(done)
        await take_backup(first, file)
        stop.set()
        await asyncio.gather(*writers)
        assert await check_findings(first) == []
    async with stores.open("sqlite") as second:
        assert await restore(second, file) == []
        [tree] = await second.store.trees.read([AGENT])
        entries = {path.text: head.entry for path, head in tree.heads.items() if head.entry}
        contents = await second.store.blobs.get([entry.blob for entry in entries.values()])
        for number in range(8):
            first_count, second_count = (
                int(contents[entries[f"{name}/{number}.md"].blob.digest].split()[0])
                for name in ("left", "right")
            )
            assert second_count >= before[number]
            assert first_count - second_count in {0, 1}


async def test_backups_of_an_unchanged_store_are_identical(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
        await take_backup(first, file.with_name("again.zip"))

    assert content(file) == content(file.with_name("again.zip"))


async def test_the_manifest_states_the_origin_of_a_backup(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file, vault_key="0123456789abcdef")
        steps = await first.store.maintenance.migrations()

    manifest = await maintenance_backup.verify(file)

    assert (manifest.carrel, manifest.created, manifest.migrations) == (VERSION, NOW, steps)
    assert steps[0] == "0001_initial.sql"
    assert manifest.vault_key == "0123456789abcdef"


async def test_a_backup_is_readable_by_its_owner_only_and_leaves_no_other_file(
    stores: Stores, tmp_path: File
) -> None:
    directory = tmp_path / "backups"
    directory.mkdir()
    async with stores.open("sqlite") as first:
        await take_backup(first, directory / "backup.zip")

    assert [entry.name for entry in directory.iterdir()] == ["backup.zip"]
    assert (directory / "backup.zip").stat().st_mode & 0o077 == 0


async def test_an_existing_file_is_never_overwritten(stores: Stores, file: File) -> None:
    fill_file(file, b"mine")
    started: list[str] = []
    async with stores.open("sqlite") as first:
        await fill(first)
        with pytest.raises(Conflict, match=r"backup\.zip"):
            await take_backup(first, file, on_progress=lambda step, *_: started.append(step))

    assert content(file) == b"mine"
    assert started == []


async def test_a_file_created_during_the_backup_is_not_overwritten(
    stores: Stores, file: File
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        with pytest.raises(Conflict, match=r"backup\.zip"):
            await take_backup(first, file, on_progress=lambda *_: fill_file(file, b"mine"))

    assert content(file) == b"mine"


@pytest.mark.parametrize("target", KINDS)
async def test_ids_continue_after_a_load_without_counters(stores: Stores, target: str) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        rows = await rows_of(first)

    async def rows_without_counters() -> Any:
        for table in TABLES:
            if table != "counter":
                yield table, rows[table]

    async with stores.open(target, first.objects or False) as second:
        await second.store.maintenance.load(rows_without_counters())
        await put_text(second, "after")

        assert not [text for text in await check_findings(second) if "counter records" not in text]


@pytest.mark.parametrize("target", KINDS)
async def test_a_backup_is_restored_only_into_an_empty_store(
    stores: Stores, file: File, target: str
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
    async with stores.open(target) as second:
        await put_text(second, "mine")
        before = await rows_of(second)

        with pytest.raises(Conflict, match="not empty"):
            await restore(second, file)
        assert await rows_of(second) == before
        assert second.objects
        assert [item async for item in second.objects.list_blobs()] == []

        with pytest.raises(Conflict, match="not empty"):
            await second.store.maintenance.load(no_rows())


async def no_rows() -> Any:
    for rows in list[Any]():
        yield rows


class FullDiskBlobStore(DirectoryBlobStore):
    """A blob store on a disk with space for one blob."""

    remaining = 1

    async def put(self, digest: Digest, content: bytes) -> None:
        if not self.remaining:
            raise OSError("no space left on device")
        self.remaining -= 1
        await super().put(digest, content)


async def test_a_failed_restore_leaves_the_store_empty(
    stores: Stores, file: File, tmp_path: File
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
    objects = FullDiskBlobStore(tmp_path / "full")
    async with stores.open("sqlite", objects) as second:
        with pytest.raises(OSError, match="no space"):
            await restore(second, file)
        assert not any((await rows_of(second)).values())
        assert await check_findings(second, grace=NOW) == []

        objects.remaining = 9
        assert await restore(second, file) == []


@pytest.mark.parametrize("target", KINDS)
async def test_a_failed_load_leaves_the_store_empty(
    stores: Stores, file: File, target: str
) -> None:
    async def broken() -> Any:
        yield "scope", [(1, "acme", "agent", "marco", 1, 0, 0)]
        raise CorruptContent("the backup is damaged")

    async with stores.open(target) as second:
        before = await rows_of(second)
        with pytest.raises(CorruptContent):
            await second.store.maintenance.load(broken())
        assert await rows_of(second) == before


async def test_binary_content_is_encoded_in_a_table(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as first:
        await put_text(first, "\x00é")
        await take_backup(first, file)

    with zipfile.ZipFile(file) as opened:
        [row] = map(json.loads, opened.read("content.jsonl").splitlines())
    assert base64.b64decode(row[4]) == "\x00é".encode()
