"""Bytes of files by the client, over every driver, and over failing connections."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

import httpx
import pytest

import carrel
from carrel_client import (
    AsyncClient,
    Client,
    DownloadedFile,
    IncompleteWorkspace,
    InvalidResponse,
    ServerUnreachable,
    WorkspaceConflict,
    requests,
)

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
    with pytest.raises(IncompleteWorkspace, match=r"a\.bin"):
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
    created = await files.upload(
        "a.json", b"{}", content_type="application/json", if_none_match="*", reason="because"
    )
    assert created.content_type == "application/json"
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


async def test_a_materialized_workspace_has_files_that_are_not_text(
    api: Any, tmp_path: FilePath
) -> None:
    await api.agents.create("finn", "Finn")
    await api.agent("finn").put("docs/a.bin", b"\xff\x00")
    await api.materialize("finn", tmp_path / "finn")
    assert (tmp_path / "finn" / "docs" / "a.bin").read_bytes() == b"\xff\x00"


@pytest.mark.parametrize("source", [5, None, io.StringIO("text")], ids=["5", "none", "text"])
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


CONTENT = os.urandom(3 * 2**20 + 7)
ROW = {
    "path": "a.bin",
    "contentType": "image/png",
    "version": 2,
    "etag": '"v2"',
    "updatedAt": "2026-11-18T20:00:00Z",
    "source": "workspace",
    "class": "live",
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
    "updateAvailable": False,
}


def digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


class BrokenBody(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body whose connection breaks before its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content
        raise httpx.ReadError("cut")


class Server:
    """Answers requests in order, and records them with their bodies."""

    def __init__(self, *answers: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[httpx.Headers, bytes]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.headers, request.read()))
        return self._answers.pop(0)(request)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.headers, await request.aread()))
        return self._answers.pop(0)(request)

    @property
    def ranges(self) -> list[tuple[str | None, str | None]]:
        return [(head.get("range"), head.get("if-range")) for head, _ in self.requests]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture(params=["blocking", "awaiting"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls an operation of a workspace's files over a server's answers."""

    def blocking(server: Server, name: str, *arguments: Any, **options: Any) -> Any:
        with Client("http://carrel", "t", transport=httpx.MockTransport(server)) as client:
            return getattr(client.workspace("w"), name)(*arguments, **options)

    async def awaiting(server: Server, name: str, *arguments: Any, **options: Any) -> Any:
        transport = httpx.MockTransport(server.answer)
        async with AsyncClient("http://carrel", "t", transport=transport) as client:
            return await getattr(client.workspace("w"), name)(*arguments, **options)

    if request.param == "blocking":
        return blocking
    return lambda *arguments, **options: asyncio.run(awaiting(*arguments, **options))


def unavailable(_: httpx.Request) -> httpx.Response:
    return httpx.Response(503, json={"error": "unavailable", "message": "no"})


def written(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json=ROW)


def whole_response(content: bytes, etag: str = '"v2"', **headers: str) -> Any:
    return lambda _: httpx.Response(200, content=content, headers=file_headers(etag, headers))


def broken(content: bytes, etag: str = '"v2"') -> Any:
    return lambda _: httpx.Response(200, stream=BrokenBody(content), headers=file_headers(etag, {}))


def rest(request: httpx.Request) -> httpx.Response:
    start = int(request.headers["range"].removeprefix("bytes=").removesuffix("-"))
    return httpx.Response(206, content=CONTENT[start:], headers=file_headers('"v2"', {}))


def file_headers(etag: str, headers: dict[str, str]) -> dict[str, str]:
    return {
        "etag": etag,
        "content-type": "image/png",
        "carrel-version": "2",
        "repr-digest": digest(CONTENT),
        **headers,
    }


def refuse_connection(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


@pytest.mark.parametrize("source", ["bytes", "path", "file", "pipe"])
def test_an_upload_is_sent_again_with_its_key_and_all_bytes(
    call: Callable[..., Any], tmp_path: FilePath, source: str
) -> None:
    local = tmp_path / "a"
    local.write_bytes(CONTENT)
    server = Server(unavailable, refuse_connection, written)
    with local.open("rb") as file:
        sources = {"bytes": CONTENT, "path": local, "file": file, "pipe": NotSeekable(CONTENT)}
        call(server, "upload", "a.bin", sources[source])
    keys = {head["idempotency-key"] for head, _ in server.requests}
    assert (len(server.requests), len(keys)) == (3, 1)
    for head, body in server.requests:
        assert body == CONTENT
        assert head["content-length"] == str(len(CONTENT))
        assert "transfer-encoding" not in head
        assert head["repr-digest"] == digest(CONTENT)


class NotSeekable(io.BytesIO):
    def seekable(self) -> bool:
        return False


def test_an_upload_waits_as_long_as_the_server_asks(call: Callable[..., Any]) -> None:
    def busy_for_a_minute(_: httpx.Request) -> httpx.Response:
        body = {"error": "unavailable", "message": "no"}
        return httpx.Response(503, json=body, headers={"retry-after": "60"})

    server = Server(busy_for_a_minute)
    with pytest.raises(Exception, match="no"):
        call(server, "upload", "a.bin", b"x")
    assert len(server.requests) == 1  # a longer pause than the client accepts


def test_a_refused_upload_is_not_repeated(call: Callable[..., Any]) -> None:
    details = {"error": "workspace_conflict", "message": "no", "details": {"currentVersion": 3}}
    server = Server(lambda _: httpx.Response(409, json=details))
    with pytest.raises(WorkspaceConflict):
        call(server, "upload", "a.bin", b"x", if_match='"v1"')
    assert len(server.requests) == 1


def test_a_download_continues_where_it_ended(call: Callable[..., Any], tmp_path: FilePath) -> None:
    server = Server(unavailable, broken(CONTENT[: 2**20]), refuse_connection, rest)
    result: DownloadedFile = call(server, "download", "a.bin", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == CONTENT
    continued = (f"bytes={2**20}-", '"v2"')
    assert server.ranges == [(None, None), (None, None), continued, continued]
    assert (result.size, result.content_type, result.version) == (len(CONTENT), "image/png", 2)
    assert os.listdir(tmp_path) == ["a"]


def test_a_download_of_a_file_that_changed_begins_again(
    call: Callable[..., Any], tmp_path: FilePath
) -> None:
    old = b"y" * 2**20
    for target in (tmp_path / "a", io.BytesIO()):
        server = Server(broken(old, '"v1"'), whole_response(CONTENT))
        call(server, "download", "a.bin", target)
        assert server.ranges[1] == (f"bytes={2**20}-", '"v1"')
        stored = target.getvalue() if isinstance(target, io.BytesIO) else target.read_bytes()
        assert stored == CONTENT


def test_a_download_that_does_not_match_its_digest_changes_nothing(
    call: Callable[..., Any], tmp_path: FilePath
) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    for answer in (
        whole_response(CONTENT[:-1] + b"x"),
        whole_response(CONTENT, **{"repr-digest": "sha-256=:/:"}),
    ):
        with pytest.raises(InvalidResponse):
            call(Server(answer), "download", "a.bin", target)
    with pytest.raises(InvalidResponse):
        call(Server(whole_response(CONTENT[:-1] + b"x")), "read_bytes", "a.bin")
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a"])


def test_a_download_that_never_succeeds_ends(call: Callable[..., Any], tmp_path: FilePath) -> None:
    server = Server(*[refuse_connection] * 9)
    with pytest.raises(ServerUnreachable):
        call(server, "download", "a.bin", tmp_path / "a")
    assert len(server.requests) == requests.MAX_ATTEMPTS
    assert os.listdir(tmp_path) == []
