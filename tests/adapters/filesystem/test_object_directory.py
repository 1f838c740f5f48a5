"""Objects by key as files: inside the root, written atomically, without leftovers."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path as File

import pytest

from carrel.adapters.filesystem.object_directory import DirectoryObjectStore
from carrel.core.identifiers import digest

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def outside(tmp_path: File) -> File:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("theirs")
    return outside


@pytest.fixture
def root(tmp_path: File) -> File:
    root = tmp_path / "root"
    root.mkdir()
    return root


async def listed(object_store: DirectoryObjectStore, prefix: str = "") -> dict[str, str | None]:
    return {key: info async for key, info in object_store.list(prefix)}


async def test_links_to_directories_are_not_followed(root: File, outside: File) -> None:
    (root / "a").symlink_to(outside, target_is_directory=True)
    object_store = DirectoryObjectStore(root)

    assert (
        "not a directory"
        in (await object_store.put({"a/secret": b"ours", "a/new": b"x"}))["a/secret"]
    )
    assert await object_store.get("a/secret") is None
    assert await listed(object_store, "a/") == {}
    await object_store.delete(["a/secret"])

    assert (outside / "secret").read_text() == "theirs"
    assert os.listdir(outside) == ["secret"]
    assert await listed(object_store) == {"a": None}


async def test_links_to_files_are_neither_read_nor_written_through(
    root: File, outside: File
) -> None:
    (root / "a").symlink_to(outside / "secret")
    object_store = DirectoryObjectStore(root)

    assert await listed(object_store) == {"a": None}
    assert await object_store.get("a") is None
    assert await object_store.put({"a": b"ours"}) == {}

    assert (outside / "secret").read_text() == "theirs"
    assert not (root / "a").is_symlink()
    assert await listed(object_store) == {"a": digest(b"ours")}


async def test_delete_of_a_link_deletes_the_link_only(root: File, outside: File) -> None:
    (root / "a").symlink_to(outside, target_is_directory=True)

    await DirectoryObjectStore(root).delete(["a"])

    assert os.listdir(root) == []
    assert (outside / "secret").read_text() == "theirs"


async def test_links_in_the_temporary_directory_are_not_followed(root: File, outside: File) -> None:
    (root / ".carrel-unfinished").symlink_to(outside, target_is_directory=True)

    assert list(await DirectoryObjectStore(root).put({"a": b"x"})) == ["a"]

    assert os.listdir(outside) == ["secret"]


async def test_readers_never_see_a_partially_written_file(root: File) -> None:
    object_store, texts = DirectoryObjectStore(root), {bytes([65 + n]) * 200_000 for n in range(8)}
    await object_store.put({"a/b": min(texts)})
    writing = True

    async def read() -> None:
        while writing:
            assert await object_store.get("a/b") in texts

    readers = [asyncio.create_task(read()) for _ in range(2)]
    await asyncio.gather(*(object_store.put({"a/b": text}) for text in texts))
    writing = False
    await asyncio.gather(*readers)


async def test_no_empty_directory_and_no_temporary_file_remains(root: File) -> None:
    object_store = DirectoryObjectStore(root)
    await object_store.put({"a/b/c/d": b"x", "a/e": b"y"})
    assert list(await object_store.put({"a/b": b"never"})) == ["a/b"]

    await object_store.delete(["a/b/c/d"])
    assert os.listdir(root) == ["a"]
    assert os.listdir(root / "a") == ["e"]
    await object_store.delete(["a/e"])

    assert os.listdir(root) == []


async def test_temporary_file_of_a_crash_is_no_object_and_is_removed_after_a_day(
    root: File,
) -> None:
    aside = root / ".carrel-unfinished"
    aside.mkdir()
    for name, age in (("old", 90_000), ("young", 60)):
        (aside / name).write_text("half")
        os.utime(aside / name, (time.time() - age,) * 2)
    object_store = DirectoryObjectStore(root)

    assert await listed(object_store) == {}
    await object_store.put({"a": b"x"})

    assert await listed(object_store) == {"a": digest(b"x")}
    assert os.listdir(aside) == ["young"]
    assert ".carrel-unfinished/young" in await object_store.put({".carrel-unfinished/young": b"x"})


async def test_file_replaces_an_empty_directory_but_no_other_directory(root: File) -> None:
    (root / "empty/inner").mkdir(parents=True)
    (root / "full").mkdir()
    (root / "full/x").touch()
    object_store = DirectoryObjectStore(root)

    refused = await object_store.put({"empty/inner": b"1", "full": b"2", "full/x/y": b"3"})

    assert set(refused) == {"full", "full/x/y"}
    assert await listed(object_store) == {"empty/inner": digest(b"1"), "full/x": digest(b"")}


async def test_file_changed_by_another_program_is_read_again(root: File) -> None:
    object_store = DirectoryObjectStore(root)
    await object_store.put({"a": b"one"})
    assert await listed(object_store) == {"a": digest(b"one")}
    facts = (root / "a").stat()

    (root / "a").write_bytes(b"two")
    os.utime(root / "a", ns=(facts.st_atime_ns, facts.st_mtime_ns))

    assert await listed(object_store) == {"a": digest(b"two")}


async def test_named_pipe_is_no_object_and_does_not_block(root: File) -> None:
    os.mkfifo(root / "a")
    object_store = DirectoryObjectStore(root)

    async with asyncio.timeout(30):
        assert await object_store.get("a") is None
        assert await listed(object_store) == {"a": None}


@pytest.fixture
def few_open_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (120, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_open_files")
async def test_deeply_nested_path_needs_few_open_files(root: File) -> None:
    object_store, key = DirectoryObjectStore(root), "/".join("d" * 200)

    assert await object_store.put({key: b"deep"}) == {}
    assert await listed(object_store) == {key: digest(b"deep")}
    assert await object_store.get(key) == b"deep"
    await object_store.delete([key])

    assert os.listdir(root) == []


async def test_disk_failure_is_an_error_and_no_refusal(tmp_path: File) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OSError):
        await DirectoryObjectStore(tmp_path / "file" / "root").put({"a": b"x"})
