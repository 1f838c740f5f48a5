"""Objects in a directory: complete or absent, durable when acknowledged, private."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path as File

import pytest

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.core.identifiers import Digest, digest

BODY = b"a large body"
NAME = digest(BODY)
HEX = NAME.removeprefix("sha256:")


def names(objects: DirectoryBlobStore) -> list[Digest]:
    async def listed() -> list[Digest]:
        return [name async for name, _, _ in objects.list_blobs()]

    return asyncio.run(listed())


def test_path_begins_with_the_first_bytes_of_the_digest(tmp_path: File) -> None:
    asyncio.run(DirectoryBlobStore(tmp_path).put(NAME, BODY))

    assert (tmp_path / HEX[:2] / HEX[2:4] / HEX).read_bytes() == BODY


def test_files_are_readable_only_by_their_owner(tmp_path: File) -> None:
    asyncio.run(DirectoryBlobStore(tmp_path).put(NAME, BODY))

    assert (tmp_path / HEX[:2] / HEX[2:4] / HEX).stat().st_mode & 0o077 == 0


def test_directories_are_open_to_the_server_alone(tmp_path: File) -> None:
    before = os.umask(0)
    try:
        objects = DirectoryBlobStore(tmp_path / "objects")
        asyncio.run(objects.put(NAME, BODY))
        asyncio.run(objects.discard([NAME]))
    finally:
        os.umask(before)
    directories = [place for place in tmp_path.rglob("*") if place.is_dir()]
    assert len(directories) == 6
    assert {place.stat().st_mode & 0o777 for place in directories} == {0o700}


def test_content_is_synced_before_the_rename_and_the_directory_after_it(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))[:11])
        sync(descriptor)

    def replace(source: str, target: File) -> None:
        steps.append("named")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    objects = DirectoryBlobStore(tmp_path / "objects")
    asyncio.run(objects.put(NAME, BODY))

    directories = [HEX[2:4], HEX[:2], "objects"]
    assert steps == ["unfinished-", "named", *directories]
    asyncio.run(objects.put(NAME, BODY))
    assert steps[5:] == directories


def test_failed_put_leaves_no_file(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    objects = DirectoryBlobStore(tmp_path)

    with pytest.raises(OSError, match="no space"):
        asyncio.run(objects.put(NAME, BODY))
    assert asyncio.run(objects.get(NAME)) is None
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_temporary_file_of_a_crash_is_not_listed_and_is_removed_when_old(
    tmp_path: File,
) -> None:
    objects = DirectoryBlobStore(tmp_path)
    asyncio.run(objects.put(NAME, BODY))
    young, old = (tmp_path / HEX[:2] / HEX[2:4] / f"unfinished-{n}" for n in "ab")
    young.write_bytes(b"a lar")
    old.write_bytes(b"a lar")
    os.utime(old, (0, 0))

    assert names(objects) == [NAME]
    assert (young.exists(), old.exists()) == (True, False)


def test_put_of_an_existing_file_renews_its_age(tmp_path: File) -> None:
    objects = DirectoryBlobStore(tmp_path)
    asyncio.run(objects.put(NAME, BODY))
    file = tmp_path / HEX[:2] / HEX[2:4] / HEX
    os.utime(file, (0, 0))

    asyncio.run(objects.put(NAME, BODY))

    assert file.stat().st_mtime > 0


def test_discarded_file_gets_its_age_from_the_time_of_discarding(tmp_path: File) -> None:
    """The grace period begins at the discard, not at the put."""
    objects = DirectoryBlobStore(tmp_path)
    asyncio.run(objects.put(NAME, BODY))
    os.utime(tmp_path / HEX[:2] / HEX[2:4] / HEX, (0, 0))

    asyncio.run(objects.discard([NAME]))

    assert (tmp_path / "trash" / HEX[:2] / HEX[2:4] / HEX).stat().st_mtime > 0


def test_list_returns_more_files_than_one_scan_reads(tmp_path: File) -> None:
    expected = [digest(str(n).encode()) for n in range(2100)]
    for name in expected:
        text = name.removeprefix("sha256:")
        file = tmp_path / text[:2] / text[2:4] / text
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    assert sorted(names(DirectoryBlobStore(tmp_path))) == sorted(expected)
