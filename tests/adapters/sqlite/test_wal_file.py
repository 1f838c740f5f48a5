"""The file of SQLite's log: long enough before it is needed, and never at anybody's cost."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path as File

import pytest
from tests.support.commits import AGENT

from carrel.adapters.sqlite import SqliteStore, open_store, wal_checkpoint, wal_file
from carrel.adapters.sqlite.wal_file import WalFile
from carrel.core.identifiers import Path
from carrel.core.store.tree import Applied, Commit, Entry, Write

pytestmark = pytest.mark.anyio
FRAME = 4096 + 24


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def put(store: SqliteStore, name: str, content: bytes) -> None:
    [blob] = await store.blobs.put([content])
    write = Write(AGENT, Path(name), Entry(blob))
    [outcome] = await store.trees.commit([Commit((write,), "tests", "put", 0)])
    assert isinstance(outcome, Applied)


def text(name: str) -> bytes:
    return name.encode() * 400


async def test_the_log_of_a_store_in_use_is_longer_than_what_is_in_it(tmp_path: File) -> None:
    file = tmp_path / "carrel.db-wal"
    async with open_store(tmp_path / "carrel.db") as store:
        await put(store, "a.md", b"a")
        assert file.stat().st_size < 100 * FRAME
        for n in range(100):
            await put(store, f"{n}.md", text(f"{n}"))
        async with asyncio.timeout(30):
            frames = store.reader.index.frames()
            while file.stat().st_size < (frames + 900) * FRAME:  # noqa: ASYNC110 - by a thread
                await asyncio.sleep(0.01)


async def test_a_store_that_is_hardly_written_to_has_no_log_laid(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor when it is closed, which wakes whoever would do it."""
    laid: list[WalFile] = []
    monkeypatch.setattr(WalFile, "preallocate", laid.append)
    async with open_store(tmp_path / "carrel.db") as store:
        await put(store, "a.md", b"a")
    assert laid == []


async def test_laying_the_log_touches_nothing_that_is_being_written(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody lays it just where others write; then only what is on the disk counts."""
    monkeypatch.setattr(wal_file, "_AHEAD", 2)
    monkeypatch.setattr(wal_checkpoint, "_CHECKPOINT_PAGES", 100_000)  # all of it stays in the log
    file, copy = tmp_path / "carrel.db", tmp_path / "copy"
    copy.mkdir()
    names = [f"{writer}-{n}.md" for writer in range(8) for n in range(40)]
    async with open_store(file) as store:
        await put(store, "first.md", b"first")
        over = asyncio.Event()

        async def write(writer: int) -> None:
            for name in names[writer * 40 : writer * 40 + 40]:
                await put(store, name, text(name))

        async def lay() -> None:
            laid = WalFile(file, 100_000)
            while not over.is_set():
                laid.should_preallocate(store.reader.index.frames())
                await asyncio.to_thread(laid.preallocate)

        laying = asyncio.create_task(lay())
        await asyncio.gather(*map(write, range(8)))
        over.set()
        await laying
        for part in (file, File(f"{file}-wal")):
            shutil.copy(part, copy)

    async with open_store(copy / file.name) as store:
        [tree] = await store.trees.read([AGENT])
        blobs = {path.text: head.entry.blob for path, head in tree.heads.items() if head.entry}
        found = await store.blobs.get(list(blobs.values()))
    assert {name: found[blobs[name].digest] for name in names} == {n: text(n) for n in names}


def test_a_log_is_laid_a_step_ahead_and_not_without_end() -> None:
    laid = WalFile(File("nowhere"), 4_000)
    asked = [frames for frames in range(10_000) if laid.should_preallocate(frames)]
    assert asked == [251, 1_252, 2_253, 3_254]
    laid.reset()
    assert not laid.should_preallocate(250)
    assert laid.should_preallocate(251)
