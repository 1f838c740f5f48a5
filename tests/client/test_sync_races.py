"""``carrel sync`` when a file changes between the scan and the write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import AgentEditor
from tests.client.sync_process import SyncProcess
from tests.support.server_process import TOKEN, Live

from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.sync_pass import PassResult
from carrel.cli.sync.watch_loop import open_pair, sync_until_stable
from carrel_client import AsyncClient, ServerUnreachable

pytestmark = pytest.mark.anyio


@pytest.fixture
def both(live: Live, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    return SyncProcess(live, editor, tmp_path / "desk")


class Meanwhile(httpx.AsyncHTTPTransport):
    """A network on which something happens right before the first request of a kind, or after."""

    def __init__(self, method: str, happens: Callable[[], None], *, lost: bool = False) -> None:
        super().__init__()
        self._method, self._happens, self._lost = method, happens, lost
        self._done = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        mine = request.method == self._method and not request.url.path.endswith("/files")
        if not mine or self._done or "/files/" not in request.url.path:
            if self._lost and self._done:
                raise httpx.ConnectError("nobody there")
            return await super().handle_async_request(request)
        self._done = True
        if self._lost:
            await (await super().handle_async_request(request)).aread()
            raise httpx.ReadError("gone before it had answered")
        self._happens()
        return await super().handle_async_request(request)


async def synced(both: SyncProcess, transport: Meanwhile) -> PassResult:
    async with (
        AsyncClient(both.live.url, TOKEN, transport=transport) as client,
        open_pair(client, both.live.url, both.editor.agent, both.dir, 0) as (sides, _),
    ):
        return await sync_until_stable(sides, 0)


async def test_file_created_on_the_server_meanwhile_is_not_overwritten(both: SyncProcess) -> None:
    both.write("a.md", "mine")
    done = await synced(both, Meanwhile("PUT", lambda: both.editor.put("a.md", "theirs")))
    assert both.server_files() == {"a.md": "theirs"}
    assert sorted(both.local_files().values()) == ["mine", "theirs"]
    assert list(done.conflicts) == ["a.md"]


async def test_edit_on_the_server_meanwhile_is_not_overwritten(both: SyncProcess) -> None:
    both.write("a.md", "1")
    await synced(both, Meanwhile("", lambda: None))
    both.write("a.md", "mine")
    await synced(both, Meanwhile("PUT", lambda: both.editor.put("a.md", "theirs")))
    assert both.server_files() == {"a.md": "theirs"}
    assert sorted(both.local_files().values()) == ["mine", "theirs"]


async def test_edit_on_the_server_meanwhile_is_not_deleted(both: SyncProcess) -> None:
    both.write("a.md", "1")
    await synced(both, Meanwhile("", lambda: None))
    (both.dir / "a.md").unlink()
    await synced(both, Meanwhile("DELETE", lambda: both.editor.put("a.md", "theirs")))
    assert both.local_files() == both.server_files() == {"a.md": "theirs"}


async def test_local_edit_meanwhile_is_not_replaced(both: SyncProcess) -> None:
    both.write("SOUL.md", "1")
    await synced(both, Meanwhile("", lambda: None))
    both.editor.put("SOUL.md", "theirs")
    await synced(both, Meanwhile("GET", lambda: both.write("SOUL.md", "saved meanwhile")))
    assert sorted(both.local_files().values()) == ["saved meanwhile", "theirs"]
    assert both.server_files() == {"SOUL.md": "theirs"}


async def test_local_file_created_meanwhile_is_not_replaced(both: SyncProcess) -> None:
    await synced(both, Meanwhile("", lambda: None))
    both.editor.put("a.md", "theirs")
    await synced(both, Meanwhile("GET", lambda: both.write("a.md", "made meanwhile")))
    assert sorted(both.local_files().values()) == ["made meanwhile", "theirs"]
    assert both.server_files() == {"a.md": "theirs"}


async def test_permanently_lost_response_makes_no_conflict(both: SyncProcess) -> None:
    both.write("a.md", "1")
    with pytest.raises(ServerUnreachable):
        await synced(both, Meanwhile("PUT", lambda: None, lost=True))
    assert both.server_files() == {"a.md": "1"}
    both.write("a.md", "2")
    done = await synced(both, Meanwhile("", lambda: None))
    assert (done.ok, both.server_files()) == (True, {"a.md": "2"})


async def test_synced_directory_follows_no_link(tmp_path: File) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("not yours")
    folder = SyncedDirectory(tmp_path / "desk")
    (tmp_path / "desk/link").symlink_to(outside)
    (tmp_path / "desk/a.md").symlink_to(outside / "a.md")
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
