"""Bytes of files by the client, over every driver."""

from __future__ import annotations

import hashlib
import io
import os
import random
from pathlib import Path as FilePath
from typing import Any

import pytest

import carrel
import carrel_client

pytestmark = pytest.mark.anyio
LARGE = random.Random(3).randbytes(2**21 + 77)


async def shared(api: Any) -> Any:
    """A shared workspace, which may have large files."""
    return api.workspace((await api.workspaces.create("w")).id)


def hidden_files(directory: FilePath) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".")]


@pytest.mark.parametrize("content", [b"", b"\xff\x00", "é".encode(), LARGE], ids=len)
async def test_bytes_in_are_bytes_out(api: Any, tmp_path: FilePath, content: bytes) -> None:
    files = await shared(api)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(content)
    for number, upload in enumerate((content, source, str(source), io.BytesIO(content)), start=1):
        stored = await files.upload("a/b.png", upload)
        assert (stored.version, stored.content_type) == (number, "image/png")
        assert stored.sha256 == hashlib.sha256(content).hexdigest()
    assert await files.read_bytes("a/b.png") == content
    assert await files.read_bytes("a/b.png", version=1) == content
    downloaded = await files.download("a/b.png", target)
    assert target.read_bytes() == content
    assert (downloaded.size, downloaded.version) == (len(content), 4)
    assert (downloaded.sha256, downloaded.etag) == (stored.sha256, stored.etag)
    buffer = io.BytesIO(b"kept")
    buffer.seek(0, os.SEEK_END)
    await files.download("a/b.png", buffer)
    assert buffer.getvalue() == b"kept" + content
    assert not hidden_files(tmp_path)


async def test_a_file_that_is_not_text_is_base64_in_json(api: Any) -> None:
    files = api.workspace()
    stored = await files.put("a.bin", b"\xff\x00", content_type="image/x-a")
    assert (stored.encoding, stored.content, stored.data) == ("base64", "/wA=", b"\xff\x00")
    assert await files.get("a.bin") == stored
    text = await files.put("a.txt", b"text")
    assert (text.encoding, text.content, text.data) == (None, "text", b"text")
    listed = {row.path: row.data for row in await files.list(content=True)}
    assert listed == {"a.bin": b"\xff\x00", "a.txt": b"text"}
    with pytest.raises(carrel_client.IncompleteWorkspace, match=r"a\.bin"):
        await files.read()
    assert await files.read("a.t") == {"a.txt": "text"}


async def test_a_pipe_is_uploaded_from_its_position(api: Any) -> None:
    files = api.workspace()
    reading, writing = os.pipe()
    os.write(writing, b"skipped-piped")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        pipe.read(8)
        await files.upload("a.txt", pipe)
        assert not pipe.closed
    assert await files.read_bytes("a.txt") == b"piped"


async def test_a_part_is_read(api: Any) -> None:
    files = await shared(api)
    await files.upload("a.bin", LARGE)
    assert await files.read_bytes("a.bin", start=5, end=9) == LARGE[5:9]
    assert await files.read_bytes("a.bin", start=len(LARGE) - 3) == LARGE[-3:]
    assert await files.read_bytes("a.bin", end=3) == LARGE[:3]
    with pytest.raises(carrel.RangeNotSatisfiable):
        await files.read_bytes("a.bin", start=len(LARGE))
    for start, end in ((3, 3), (-1, 4), (5, 2)):
        with pytest.raises(carrel.ValidationError):
            await files.read_bytes("a.bin", start=start, end=end)


async def test_conditions_reason_and_type_of_an_upload(api: Any) -> None:
    files = api.workspace()
    made = await files.upload(
        "a.json", b"{}", content_type="application/json", if_none_match="*", reason="because"
    )
    assert made.content_type == "application/json"
    with pytest.raises(carrel.WorkspaceConflict):
        await files.upload("a.json", b"[]", if_none_match="*")
    with pytest.raises(carrel.WorkspaceConflict):
        await files.upload("a.json", b"[]", if_match='"v9"')
    [version] = await files.history("a.json")
    assert version.reason == "because"
    first = await files.upload("a.json", b"[]", idempotency_key="k")
    assert await files.upload("a.json", b"[]", idempotency_key="k") == first
    with pytest.raises(carrel.IdempotencyKeyMismatch):
        await files.upload("a.json", b"[1]", idempotency_key="k")
    with pytest.raises(carrel.WorkspaceTooLarge):
        await files.upload("a.json", bytes(2**20 + 1))


async def test_a_failed_download_changes_nothing(api: Any, tmp_path: FilePath) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    with pytest.raises(carrel.NotFound):
        await api.workspace().download("none", target)
    assert not hidden_files(tmp_path)
    assert target.read_bytes() == b"old"
    await api.workspace().upload("a", b"new")
    os.chmod(target, 0o640)
    await api.workspace().download("a", target)
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", 0o640)


@pytest.mark.parametrize("source", [5, None, io.StringIO("text")], ids=str)
async def test_a_source_that_has_no_bytes_is_refused(api: Any, source: Any) -> None:
    with pytest.raises(carrel.ValidationError, match="a source is"):
        await api.workspace().upload("a", source)


async def test_a_run_gives_the_bytes_that_it_froze(api: Any, tmp_path: FilePath) -> None:
    workspace = (await api.workspaces.create("w")).id
    files = api.workspace(workspace)
    await files.upload("a.bin", LARGE)
    run = await api.start_run("w", workspace_id=workspace)
    await files.upload("a.bin", b"later")
    assert await run.workspace.read_bytes("a.bin", end=9) == LARGE[:9]
    await run.workspace.download("a.bin", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == LARGE
    assert (await run.workspace.get("a.bin")).data == LARGE
