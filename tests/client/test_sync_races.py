"""Somebody is quicker: between the look and the write, on the server and on the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import Hands
from tests.client.sync_process import Synced
from tests.support.server_process import TOKEN, Live

from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.sync_pass import PassResult
from carrel.cli.sync.watch_loop import open_pair, sync_until_stable
from carrel_client import AsyncClient, ServerUnreachable

pytestmark = pytest.mark.anyio


@pytest.fixture
def both(live: Live, hands: Hands, tmp_path: File) -> Synced:
    return Synced(live, hands, tmp_path / "desk")


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


async def synced(both: Synced, wire: Meanwhile) -> PassResult:
    async with (
        AsyncClient(both.live.url, TOKEN, transport=wire) as desk,
        open_pair(desk, both.live.url, both.hands.agent, both.dir, 0) as (sides, _),
    ):
        return await sync_until_stable(sides, 0)


async def test_a_text_that_came_to_the_server_meanwhile_is_not_written_over(both: Synced) -> None:
    both.write("a.md", "mine")
    done = await synced(both, Meanwhile("PUT", lambda: both.hands.put("a.md", "theirs")))
    assert both.there() == {"a.md": "theirs"}
    assert sorted(both.here().values()) == ["mine", "theirs"]
    assert list(done.conflicts) == ["a.md"]


async def test_an_edit_that_came_to_the_server_meanwhile_is_not_written_over(both: Synced) -> None:
    both.write("a.md", "1")
    await synced(both, Meanwhile("", lambda: None))
    both.write("a.md", "mine")
    await synced(both, Meanwhile("PUT", lambda: both.hands.put("a.md", "theirs")))
    assert both.there() == {"a.md": "theirs"}
    assert sorted(both.here().values()) == ["mine", "theirs"]


async def test_an_edit_that_came_to_the_server_meanwhile_is_not_removed(both: Synced) -> None:
    both.write("a.md", "1")
    await synced(both, Meanwhile("", lambda: None))
    (both.dir / "a.md").unlink()
    await synced(both, Meanwhile("DELETE", lambda: both.hands.put("a.md", "theirs")))
    assert both.here() == both.there() == {"a.md": "theirs"}


async def test_a_text_that_was_saved_here_meanwhile_is_not_replaced(both: Synced) -> None:
    both.write("SOUL.md", "1")
    await synced(both, Meanwhile("", lambda: None))
    both.hands.put("SOUL.md", "theirs")
    await synced(both, Meanwhile("GET", lambda: both.write("SOUL.md", "saved meanwhile")))
    assert sorted(both.here().values()) == ["saved meanwhile", "theirs"]
    assert both.there() == {"SOUL.md": "theirs"}


async def test_a_file_that_was_made_here_meanwhile_is_not_replaced(both: Synced) -> None:
    await synced(both, Meanwhile("", lambda: None))
    both.hands.put("a.md", "theirs")
    await synced(both, Meanwhile("GET", lambda: both.write("a.md", "made meanwhile")))
    assert sorted(both.here().values()) == ["made meanwhile", "theirs"]
    assert both.there() == {"a.md": "theirs"}


async def test_a_write_whose_answer_is_lost_for_good_makes_no_conflict(both: Synced) -> None:
    both.write("a.md", "1")
    with pytest.raises(ServerUnreachable):
        await synced(both, Meanwhile("PUT", lambda: None, lost=True))
    assert both.there() == {"a.md": "1"}
    both.write("a.md", "2")
    done = await synced(both, Meanwhile("", lambda: None))
    assert (done.ok, both.there()) == (True, {"a.md": "2"})


async def test_the_folder_itself_follows_no_link_and_leaves_for_no_name(tmp_path: File) -> None:
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
