"""``carrel sync`` when a file changes between the scan and the write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import AgentEditor
from tests.client.sync_process import SyncProcess
from tests.support.server_process import TOKEN, ServerProcess

from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.sync_pass import PassResult
from carrel.cli.sync.watch_loop import open_pair, sync_until_stable
from carrel_client import AsyncClient, ServerUnreachable

pytestmark = pytest.mark.anyio


@pytest.fixture
def pair(live: ServerProcess, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    return SyncProcess(live, editor, tmp_path / "synced")


class InterferingTransport(httpx.AsyncHTTPTransport):
    """Runs a callback before the first file request of a method, or loses its response."""

    def __init__(
        self, method: str, interfere: Callable[[], None], *, loses_response: bool = False
    ) -> None:
        super().__init__()
        self._method, self._interfere, self._loses_response = method, interfere, loses_response
        self._is_done = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        mine = request.method == self._method and not request.url.path.endswith("/files")
        if not mine or self._is_done or "/files/" not in request.url.path:
            if self._loses_response and self._is_done:
                raise httpx.ConnectError("connection refused")
            return await super().handle_async_request(request)
        self._is_done = True
        if self._loses_response:
            await (await super().handle_async_request(request)).aread()
            raise httpx.ReadError("connection closed before the response")
        self._interfere()
        return await super().handle_async_request(request)


async def synced(pair: SyncProcess, transport: InterferingTransport) -> PassResult:
    async with (
        AsyncClient(pair.live.url, TOKEN, transport=transport) as client,
        open_pair(client, pair.live.url, pair.editor.agent, pair.dir, 0) as (sides, _),
    ):
        return await sync_until_stable(sides, 0)


async def test_file_created_on_the_server_meanwhile_is_not_overwritten(pair: SyncProcess) -> None:
    pair.write("a.md", "mine")
    done = await synced(
        pair, InterferingTransport("PUT", lambda: pair.editor.put("a.md", "theirs"))
    )
    assert pair.server_files() == {"a.md": "theirs"}
    assert sorted(pair.local_files().values()) == ["mine", "theirs"]
    assert list(done.conflicts) == ["a.md"]


async def test_edit_on_the_server_meanwhile_is_not_overwritten(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    await synced(pair, InterferingTransport("", lambda: None))
    pair.write("a.md", "mine")
    await synced(pair, InterferingTransport("PUT", lambda: pair.editor.put("a.md", "theirs")))
    assert pair.server_files() == {"a.md": "theirs"}
    assert sorted(pair.local_files().values()) == ["mine", "theirs"]


async def test_edit_on_the_server_meanwhile_is_not_deleted(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    await synced(pair, InterferingTransport("", lambda: None))
    (pair.dir / "a.md").unlink()
    await synced(pair, InterferingTransport("DELETE", lambda: pair.editor.put("a.md", "theirs")))
    assert pair.local_files() == pair.server_files() == {"a.md": "theirs"}


async def test_local_edit_meanwhile_is_not_replaced(pair: SyncProcess) -> None:
    pair.write("SOUL.md", "1")
    await synced(pair, InterferingTransport("", lambda: None))
    pair.editor.put("SOUL.md", "theirs")
    await synced(
        pair, InterferingTransport("GET", lambda: pair.write("SOUL.md", "saved meanwhile"))
    )
    assert sorted(pair.local_files().values()) == ["saved meanwhile", "theirs"]
    assert pair.server_files() == {"SOUL.md": "theirs"}


async def test_local_file_created_meanwhile_is_not_replaced(pair: SyncProcess) -> None:
    await synced(pair, InterferingTransport("", lambda: None))
    pair.editor.put("a.md", "theirs")
    await synced(pair, InterferingTransport("GET", lambda: pair.write("a.md", "made meanwhile")))
    assert sorted(pair.local_files().values()) == ["made meanwhile", "theirs"]
    assert pair.server_files() == {"a.md": "theirs"}


async def test_permanently_lost_response_makes_no_conflict(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    with pytest.raises(ServerUnreachable):
        await synced(pair, InterferingTransport("PUT", lambda: None, loses_response=True))
    assert pair.server_files() == {"a.md": "1"}
    pair.write("a.md", "2")
    done = await synced(pair, InterferingTransport("", lambda: None))
    assert (done.ok, pair.server_files()) == (True, {"a.md": "2"})


async def test_synced_directory_follows_no_link(tmp_path: File) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("not yours")
    folder = SyncedDirectory(tmp_path / "synced")
    (tmp_path / "synced/link").symlink_to(outside)
    (tmp_path / "synced/a.md").symlink_to(outside / "a.md")
    try:
        for name in ("link/b.md", "../b.md", "x/../../b.md", "/b.md", "link/../b.md", "a//b"):
            with pytest.raises(OSError):
                folder.put(name, b"x", None)
        assert folder.read("link/a.md") is None
        assert folder.read("a.md") is None
        assert not folder.put("a.md", b"x", None)
    finally:
        folder.close()
    assert [file.name for file in outside.iterdir()] == ["a.md"]
    assert (outside / "a.md").read_text("utf-8") == "not yours"
    assert not (tmp_path / "b.md").exists()
