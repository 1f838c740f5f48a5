"""``materialize``: the directory is exactly what is served, or unchanged."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import (
    AgentEditor,
    FaultyTransport,
    client_over,
    json_of,
    read_directory,
    stat_directory,
)
from tests.support.server_process import TOKEN, ServerProcess

from carrel_client import (
    AsyncClient,
    Client,
    InvalidResponse,
    NotACarrelDirectory,
    NotFound,
    ResponseTooLarge,
    ServerUnreachable,
    UnusableWorkspace,
)
from carrel_client.local_directory import atomic_directory


class CorruptingTransport(FaultyTransport):
    """Corrupts the body of every listing, but not its headers."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        agent = answer.headers["Carrel-Agent"]
        return httpx.Response(200, text="spoilt", headers={"Carrel-Agent": agent})


def test_directory_holds_exactly_what_is_served(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    contents = {"a.md": "one\r\ntwo\rthree\n\n", "b/c/d.md": "\ufeffünï\0cødé\u2028", "b/e": ""}
    for path, content in contents.items():
        editor.put(path, content)
    editor.put("WHO.md", "I am {{AGENT_NAME}}.", of="templates")

    result = client.materialize(editor.agent, directory)

    assert read_directory(directory) == editor.served()
    assert read_directory(directory)["WHO.md"] == b"I am Ada."
    assert (result.changed, result.stale, result.problem) == (True, False, None)
    assert result.directory == str(directory)
    assert result.files == {
        path: hashlib.sha256(content).hexdigest()
        for path, content in read_directory(directory).items()
    }
    manifest = "".join(f"{path}\0{digest}\n" for path, digest in sorted(result.files.items()))
    assert result.fingerprint == hashlib.sha256(manifest.encode()).hexdigest()
    with pytest.raises(TypeError):
        result.files["x"] = "y"  # type: ignore[index]  # raises on purpose


def test_unchanged_workspace_writes_nothing(
    live: ServerProcess, editor: AgentEditor, directory: File
) -> None:
    editor.put("a/b.md", "x")
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        first = client.materialize(editor.agent, directory)
        before = stat_directory(directory)
        again = client.materialize(editor.agent, directory)

    assert transport.statuses == [200, 304]
    assert stat_directory(directory) == before
    assert not again.changed
    assert (again.files, again.fingerprint, again.etag) == (
        first.files,
        first.fingerprint,
        first.etag,
    )


def test_file_deleted_on_the_server_is_removed(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("a/b.md", "x")
    editor.put("c.md", "y")
    client.materialize(editor.agent, directory)
    editor.delete("a/b.md")

    assert client.materialize(editor.agent, directory).changed

    assert not (directory / "a").exists()
    assert read_directory(directory) == editor.served()


def test_files_of_one_agent_are_not_left_for_another(
    client: Client, http: httpx.Client, directory: File
) -> None:
    first, second = AgentEditor.of_new_agent(http), AgentEditor.of_new_agent(http)
    first.put("secret.md", "of one")
    second.put("own.md", "of the other")
    client.materialize(first.agent, directory)

    client.materialize(second.agent, directory)

    assert read_directory(directory) == second.served()


def test_rename_of_the_agent_changes_the_fingerprint(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("WHO.md", "I am {{AGENT_NAME}}.", of="templates")
    first = client.materialize(editor.agent, directory)

    editor.rename("Grace")
    second = client.materialize(editor.agent, directory)

    assert (directory / "WHO.md").read_text() == "I am Grace."
    assert second.changed
    assert first.fingerprint != second.fingerprint


def test_change_without_effect_on_files_writes_none(
    live: ServerProcess, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "mine")
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        first = client.materialize(editor.agent, directory)
        before = stat_directory(directory / "a.md")
        editor.put("a.md", "of the template, hidden", of="templates")
        second = client.materialize(editor.agent, directory)
        third = client.materialize(editor.agent, directory)

    assert transport.statuses == [200, 200, 304]
    assert (second.changed, third.changed) == (False, False)
    assert first.etag != second.etag == third.etag
    assert stat_directory(directory / "a.md") == before


def test_foreign_directory_is_left_alone(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    directory.mkdir(parents=True)
    (directory / "mine.txt").write_text("mine")

    for stale_ok in (False, True):
        with pytest.raises(NotACarrelDirectory):
            client.materialize(editor.agent, directory, stale_ok=stale_ok)

    assert os.listdir(directory) == ["mine.txt"]


def test_file_is_refused_as_a_directory(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    directory.parent.mkdir()
    directory.write_text("mine")

    with pytest.raises(NotACarrelDirectory):
        client.materialize(editor.agent, directory)

    assert directory.read_text() == "mine"


def test_empty_directory_is_filled_and_keeps_its_mode(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x")
    directory.mkdir(parents=True)
    directory.chmod(0o750)

    client.materialize(editor.agent, directory)

    assert read_directory(directory) == editor.served()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o750


def test_link_to_a_directory_stays_a_link(
    client: Client, editor: AgentEditor, directory: File, tmp_path: File
) -> None:
    editor.put("a.md", "x")
    link = tmp_path / "link"
    link.symlink_to(directory)

    result = client.materialize(editor.agent, link)

    assert link.is_symlink()
    assert result.directory == str(directory)
    assert read_directory(directory) == editor.served()


def test_mount_point_is_refused(client: Client, editor: AgentEditor) -> None:
    for place in ("/", "/proc"):
        with pytest.raises(UnusableWorkspace, match="mount point"):
            client.materialize(editor.agent, place)


def test_failure_leaves_the_earlier_files(
    live: ServerProcess, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x")
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        earlier = client.materialize(editor.agent, directory)
        before, transport.cut = stat_directory(directory), True

        with pytest.raises(ServerUnreachable):
            client.materialize(editor.agent, directory)
        stale = client.materialize(editor.agent, directory, stale_ok=True)

        assert stat_directory(directory) == before
        assert (stale.stale, stale.changed) == (True, False)
        assert isinstance(stale.problem, ServerUnreachable)
        assert (stale.files, stale.fingerprint) == (earlier.files, earlier.fingerprint)
        transport.cut = False
        assert not client.materialize(editor.agent, directory, stale_ok=True).stale


def test_stale_files_are_used_only_if_intact_and_of_the_same_agent(
    live: ServerProcess, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x")
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        transport.cut = True
        with pytest.raises(ServerUnreachable):
            client.materialize(editor.agent, directory, stale_ok=True)
        assert not directory.exists()
        transport.cut = False
        client.materialize(editor.agent, directory)
        transport.cut = True
        with pytest.raises(ServerUnreachable):
            client.materialize("another", directory, stale_ok=True)
        (directory / "a.md").write_text("tampered")
        with pytest.raises(ServerUnreachable):
            client.materialize(editor.agent, directory, stale_ok=True)


def test_stale_files_are_not_used_for_another_agent_with_the_slug(
    live: ServerProcess, client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "of the first")
    client.materialize(editor.agent, directory)
    before = stat_directory(directory)
    assert editor.http.delete(f"/v1/agents/{editor.agent}").status_code == 204
    json_of(editor.http.post("/v1/agents", json={"slug": editor.agent, "name": "Another"}))
    editor.put("a.md", "of the second")

    with Client(live.url, TOKEN, max_response_bytes=10) as small, pytest.raises(ResponseTooLarge):
        small.materialize(editor.agent, directory)
    with client_over(CorruptingTransport(), live.url) as spoilt, pytest.raises(InvalidResponse):
        spoilt.materialize(editor.agent, directory, stale_ok=True)

    assert stat_directory(directory) == before
    assert client.materialize(editor.agent, directory, stale_ok=True).changed
    assert read_directory(directory) == editor.served()


def test_stale_files_are_used_when_the_listing_is_invalid(
    live: ServerProcess, client: Client, editor: AgentEditor, directory: File
) -> None:
    client.materialize(editor.agent, directory)
    editor.put("a.md", "newer")
    with client_over(CorruptingTransport(), live.url) as spoilt:
        stale = spoilt.materialize(editor.agent, directory, stale_ok=True)
    assert (stale.stale, type(stale.problem)) == (True, InvalidResponse)


def test_stale_files_are_found_by_agent_id_too(
    live: ServerProcess, editor: AgentEditor, directory: File
) -> None:
    id = json_of(editor.http.get(f"/v1/agents/{editor.agent}"))["id"]
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        client.materialize(editor.agent, directory)
        assert not client.materialize(id, directory).changed
        assert transport.statuses == [200, 304]
        transport.cut = True
        for name in (id, editor.agent):
            assert client.materialize(name, directory, stale_ok=True).stale
        with pytest.raises(ServerUnreachable):
            client.materialize("agt_000000000000000000000000", directory, stale_ok=True)


@pytest.mark.parametrize("name", ["de\0sk", "\0", "\ud800"])
def test_invalid_directory_name_is_refused(
    client: Client, editor: AgentEditor, tmp_path: File, name: str
) -> None:
    for stale_ok in (False, True):
        with pytest.raises(UnusableWorkspace, match="is not a valid directory name"):
            client.materialize(editor.agent, tmp_path / "new" / name, stale_ok=stale_ok)
    assert os.listdir(tmp_path) == []


def test_unknown_agent_is_an_error(client: Client, directory: File) -> None:
    with pytest.raises(NotFound):
        client.materialize("unknown", directory)
    assert not directory.exists()


def test_concurrent_calls_wait_for_each_other(
    live: ServerProcess, http: httpx.Client, directory: File
) -> None:
    both = [AgentEditor.of_new_agent(http), AgentEditor.of_new_agent(http)]
    for number, editor in enumerate(both):
        for name in range(20):
            editor.put(f"{number}/{name}.md", f"{number} {name}" * 100)

    def pull(number: int) -> None:
        with Client(live.url, TOKEN) as client:
            client.materialize(both[number % 2].agent, directory)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(pull, range(24))) == [None] * 24

    assert read_directory(directory) in [editor.served() for editor in both]
    assert os.listdir(directory.parent / ".directory.carrel") == ["lock"]


def test_progress_is_reported_for_every_file(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x")
    editor.put("b.md", "y")
    calls: list[tuple[str, int, int]] = []

    result = client.materialize(
        editor.agent,
        directory,
        progress=lambda path, count, total: calls.append((path, count, total)),
    )

    total = len(result.files)
    assert calls == [("writing files", number, total) for number in range(1, total + 1)]


@pytest.mark.anyio
async def test_concurrent_awaiting_calls_wait_for_each_other(
    live: ServerProcess, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x")
    async with AsyncClient(live.url, TOKEN) as client:
        results = await asyncio.gather(
            *(client.materialize(editor.agent, directory) for _ in range(5)),
            client.agent(editor.agent).materialize(directory),
        )
    assert [result.changed for result in results].count(True) == 1
    assert read_directory(directory) == editor.served()


@pytest.mark.anyio
async def test_cancellation_leaves_no_partial_directory_and_no_lock(
    live: ServerProcess, editor: AgentEditor, directory: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in range(10):
        editor.put(f"{name}.md", "x")
    loop, writing = asyncio.get_running_loop(), asyncio.Event()
    create = atomic_directory._create

    def signal_and_create(path: str, content: bytes) -> None:
        loop.call_soon_threadsafe(writing.set)
        create(path, content)

    monkeypatch.setattr(atomic_directory, "_create", signal_and_create)
    async with AsyncClient(live.url, TOKEN) as client:
        task = asyncio.create_task(client.materialize(editor.agent, directory))
        await writing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert read_directory(directory) in ({}, editor.served())
        assert os.listdir(directory.parent / ".directory.carrel") == ["lock"]
        await client.materialize(editor.agent, directory)
    assert read_directory(directory) == editor.served()
