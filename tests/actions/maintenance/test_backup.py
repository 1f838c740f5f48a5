"""Backups: consistent while others write, verified, portable, refused by name when damaged."""

from __future__ import annotations

import asyncio
import base64
import json
import zipfile
from contextlib import closing
from pathlib import Path as File
from typing import Any

import pytest
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
async def test_a_backup_from_before_there_were_sessions_can_be_restored(
    stores: Stores, file: File, target: str
) -> None:
    async with stores.open("sqlite", objects=False) as first:
        await fill(first, talks=False)
        seen = await read_view(first)
        with file.open("w+b") as opened, closing(ArchiveWriter(opened)) as packing:
            async with first.store.maintenance.snapshot() as frozen:
                for table in [table for table in TABLES if table not in OPTIONAL_TABLES]:
                    await packing.add_table(table, frozen.rows(table))
            packing.finish(VERSION, NOW, await first.store.maintenance.migrations(), None)
    async with stores.open(target, objects=False) as second:
        assert await restore(second, file) == []
        assert await read_view(second) == seen


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
async def test_a_store_restored_from_a_backup_shows_what_the_first_did(
    stores: Stores, file: File, source: str, target: str
) -> None:
    async with stores.open(source) as first:
        await fill(first)
        backup = await take_backup(first, file)
        rows, seen = await rows_of(first), await read_view(first)
    async with stores.open(target) as second:
        assert await restore(second, file) == []

        restored = await rows_of(second)
        own = {"counter", "mark"}
        assert {t: r for t, r in restored.items() if t not in own} == {
            t: r for t, r in rows.items() if t not in own
        }
        assert await read_view(second) == seen
    assert backup.manifest.tables["version"].rows == len(rows["version"])
    assert backup.manifest.objects == 3
    assert backup.size == len(content(file))


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
async def test_a_restored_store_goes_on_where_the_first_stood(
    stores: Stores, file: File, source: str, target: str
) -> None:
    async with stores.open(source) as first:
        await fill(first)
        [was] = await first.store.trees.read([AGENT])
        await take_backup(first, file)
    async with stores.open(target) as second:
        await restore(second, file)
        past = await second.store.events.latest_cursor()

        head = await put_text(second, "after")
        await put_text(second, "z" * 100_000, path=Path("new.txt"))
        await put_text(second, "elsewhere", scope=TEMPLATE, path=Path("new.md"))

        assert head.version == was.version(SOUL) + 1
        assert head.revision == was.revision + 1
        events = await second.store.events.read_after(past)
        assert [event.payload["path"] for event in events] == ["SOUL.md", "new.txt", "new.md"]
        assert await check_findings(second) == []
        again = file.with_name("again.zip")
        await take_backup(second, again)
    async with stores.open(source) as third:
        assert await restore(third, again) == []


@pytest.mark.parametrize("target", KINDS)
async def test_where_there_is_no_place_outside_large_bytes_go_into_rows(
    stores: Stores, file: File, target: str
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        seen = await read_view(first)
        await take_backup(first, file)
    async with stores.open(target, objects=False) as second:
        assert await restore(second, file) == []
        assert await read_view(second) == seen
        assert all(row[4] is not None for row in (await rows_of(second))["content"])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_backup_taken_while_eight_write_is_of_one_moment(
    stores: Stores, file: File, kind: str
) -> None:
    """Each writer writes one file and then another: no backup may hold more of the second."""
    async with stores.open(kind) as first:
        await fill(first)
        done = [0] * 8
        warm, enough = asyncio.Event(), asyncio.Event()

        async def write(number: int) -> None:
            while not enough.is_set():
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
        enough.set()
        await asyncio.gather(*writers)
        assert await check_findings(first) == []
    async with stores.open("sqlite") as second:
        assert await restore(second, file) == []
        [tree] = await second.store.trees.read([AGENT])
        entries = {path.text: head.entry for path, head in tree.heads.items() if head.entry}
        contents = await second.store.blobs.get([entry.blob for entry in entries.values()])
        for number in range(8):
            left, right = (
                int(contents[entries[f"{name}/{number}.md"].blob.digest].split()[0])
                for name in ("left", "right")
            )
            assert right >= before[number]
            assert left - right in {0, 1}


async def test_the_same_store_gives_the_same_bytes(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
        await take_backup(first, file.with_name("again.zip"))

    assert content(file) == content(file.with_name("again.zip"))


async def test_the_manifest_says_where_a_backup_comes_from(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file, vault_key="0123456789abcdef")
        steps = await first.store.maintenance.migrations()

    manifest = await maintenance_backup.verify(file)

    assert (manifest.carrel, manifest.created, manifest.migrations) == (VERSION, NOW, steps)
    assert steps[0] == "0001_ground.sql"
    assert manifest.vault_key == "0123456789abcdef"


async def test_a_backup_is_for_its_owner_alone_and_leaves_nothing_beside_it(
    stores: Stores, tmp_path: File
) -> None:
    directory = tmp_path / "backups"
    directory.mkdir()
    async with stores.open("sqlite") as first:
        await take_backup(first, directory / "backup.zip")

    assert [each.name for each in directory.iterdir()] == ["backup.zip"]
    assert (directory / "backup.zip").stat().st_mode & 0o077 == 0


async def test_a_file_that_is_there_is_never_written_over(stores: Stores, file: File) -> None:
    fill_file(file, b"mine")
    started: list[str] = []
    async with stores.open("sqlite") as first:
        await fill(first)
        with pytest.raises(Conflict, match=r"backup\.zip"):
            await take_backup(first, file, on_progress=lambda what, *_: started.append(what))

    assert content(file) == b"mine"
    assert started == []


async def test_a_file_that_comes_meanwhile_is_not_written_over_either(
    stores: Stores, file: File
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        with pytest.raises(Conflict, match=r"backup\.zip"):
            await take_backup(first, file, on_progress=lambda *_: fill_file(file, b"mine"))

    assert content(file) == b"mine"


@pytest.mark.parametrize("target", KINDS)
async def test_ids_go_on_though_no_counter_came_along(stores: Stores, target: str) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        rows = await rows_of(first)

    async def uncounted() -> Any:
        for table in TABLES:
            if table != "counter":
                yield table, rows[table]

    async with stores.open(target, first.objects or False) as second:
        await second.store.maintenance.load(uncounted())
        await put_text(second, "after")

        assert not [text for text in await check_findings(second) if "counter records" not in text]


@pytest.mark.parametrize("target", KINDS)
async def test_a_backup_goes_into_an_empty_store_only(
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
        assert [each async for each in second.objects.list_blobs()] == []

        with pytest.raises(Conflict, match="not empty"):
            await second.store.maintenance.load(nothing())


async def nothing() -> Any:
    for rows in list[Any]():
        yield rows


class Failing(DirectoryBlobStore):
    """A disk on which there is room for one."""

    room = 1

    async def put(self, digest: Digest, content: bytes) -> None:
        if not self.room:
            raise OSError("no space left on device")
        self.room -= 1
        await super().put(digest, content)


async def test_a_restore_that_fails_half_way_leaves_the_store_empty(
    stores: Stores, file: File, tmp_path: File
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
    objects = Failing(tmp_path / "full")
    async with stores.open("sqlite", objects) as second:
        with pytest.raises(OSError, match="no space"):
            await restore(second, file)
        assert not any((await rows_of(second)).values())
        assert await check_findings(second, grace=NOW) == []

        objects.room = 9
        assert await restore(second, file) == []


@pytest.mark.parametrize("target", KINDS)
async def test_rows_that_fail_half_way_leave_the_store_empty(
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


async def test_bytes_are_told_from_text_in_a_table(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as first:
        await put_text(first, "\x00é")
        await take_backup(first, file)

    with zipfile.ZipFile(file) as opened:
        [row] = map(json.loads, opened.read("content.jsonl").splitlines())
    assert base64.b64decode(row[4]) == "\x00é".encode()
