"""Uploads are sent again as a whole, downloads continue where they ended."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

import httpx
import pytest

from carrel_client import (
    AsyncClient,
    Client,
    DownloadedFile,
    InvalidResponse,
    ServerUnreachable,
    WorkspaceConflict,
    requests,
)

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


def whole(content: bytes, etag: str = '"v2"', **headers: str) -> Any:
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
        server = Server(broken(old, '"v1"'), whole(CONTENT))
        call(server, "download", "a.bin", target)
        assert server.ranges[1] == (f"bytes={2**20}-", '"v1"')
        stored = target.getvalue() if isinstance(target, io.BytesIO) else target.read_bytes()
        assert stored == CONTENT


def test_a_download_that_does_not_match_its_digest_changes_nothing(
    call: Callable[..., Any], tmp_path: FilePath
) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    for answer in (whole(CONTENT[:-1] + b"x"), whole(CONTENT, **{"repr-digest": "sha-256=:/:"})):
        with pytest.raises(InvalidResponse):
            call(Server(answer), "download", "a.bin", target)
    with pytest.raises(InvalidResponse):
        call(Server(whole(CONTENT[:-1] + b"x")), "read_bytes", "a.bin")
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a"])


def test_a_download_that_never_succeeds_ends(call: Callable[..., Any], tmp_path: FilePath) -> None:
    server = Server(*[refuse_connection] * 9)
    with pytest.raises(ServerUnreachable):
        call(server, "download", "a.bin", tmp_path / "a")
    assert len(server.requests) == requests.MAX_ATTEMPTS
    assert os.listdir(tmp_path) == []
