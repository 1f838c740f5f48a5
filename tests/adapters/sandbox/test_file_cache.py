"""The cache of files that commands are given."""

from __future__ import annotations

from pathlib import Path as File

from carrel.adapters.sandbox.local.file_cache import FileCache
from carrel.adapters.sandbox.local.materialized_files import MaterializedFiles
from carrel.core.identifiers import Path, digest
from carrel.core.store.blob import Blob
from carrel.ports.sandbox import FileKind, InputFile


def test_a_cleared_cache_has_no_content_and_farms_in_use_go_when_released(tmp_path: File) -> None:
    """Also those of another process that has the same contents."""
    content = InputFile(FileKind.FILE, Blob(digest(b"text"), 4))
    materialized = MaterializedFiles({Path("a"): content}, ())
    first, second = [FileCache(tmp_path / "bytes", tmp_path / name, None) for name in "12"]
    for cache in (first, second):
        cache.store_all([content], {content.blob.digest: b"text"})
        cache.acquire("idle", {}, materialized)
        cache.acquire("used", {}, materialized)
        cache.release("idle")

    first.clear()

    assert list((tmp_path / "bytes").iterdir()) == []
    assert [farm.name for farm in (tmp_path / "1").iterdir()] == ["used"]
    assert second.acquire_existing("idle") is None
    for cache in (first, second):
        cache.release("used")
        assert cache.acquire_existing("used") is None
    assert [file for name in "12" for file in (tmp_path / name).iterdir()] == []
    cache.store_all([content], {content.blob.digest: b"text"})
    assert cache.acquire("used", {}, materialized) == cache.acquire_existing("used")
