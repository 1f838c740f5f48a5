"""A workspace as a directory: exactly what is served, or untouched."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import Hands, Wire, held, look, made, over
from tests.support.server_process import TOKEN, Live

from carrel_client import (
    AsyncClient,
    Client,
    InvalidResponse,
    NotACarrelDirectory,
    NotFound,
    ResponseTooLarge,
    ServerUnreachable,
    UnusableWorkspace,
    atomic_directory,
)


class Spoiling(Wire):
    """A network on which every listing comes to harm, its headers apart."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        agent = answer.headers["Carrel-Agent"]
        return httpx.Response(200, text="spoilt", headers={"Carrel-Agent": agent})


def test_a_directory_holds_exactly_what_is_served(client: Client, hands: Hands, desk: File) -> None:
    contents = {"a.md": "one\r\ntwo\rthree\n\n", "b/c/d.md": "\ufeffünï\0cødé\u2028", "b/e": ""}
    for path, content in contents.items():
        hands.put(path, content)
    hands.put("WHO.md", "I am {{AGENT_NAME}}.", of="templates")

    result = client.materialize(hands.agent, desk)

    assert held(desk) == hands.served()
    assert held(desk)["WHO.md"] == b"I am Ada."
    assert (result.changed, result.stale, result.problem) == (True, False, None)
    assert result.directory == str(desk)
    assert result.files == {
        path: hashlib.sha256(content).hexdigest() for path, content in held(desk).items()
    }
    whole = "".join(f"{path}\0{digest}\n" for path, digest in sorted(result.files.items()))
    assert result.fingerprint == hashlib.sha256(whole.encode()).hexdigest()
    with pytest.raises(TypeError):
        result.files["x"] = "y"  # type: ignore[index]  # that it cannot be done is the point


def test_nothing_is_written_when_nothing_has_changed(live: Live, hands: Hands, desk: File) -> None:
    hands.put("a/b.md", "x")
    wire = Wire()
    with over(wire, live.url) as client:
        first = client.materialize(hands.agent, desk)
        before = look(desk)
        again = client.materialize(hands.agent, desk)

    assert wire.statuses == [200, 304]
    assert look(desk) == before
    assert not again.changed
    assert (again.files, again.fingerprint, again.etag) == (
        first.files,
        first.fingerprint,
        first.etag,
    )


def test_what_vanished_upstream_is_gone(client: Client, hands: Hands, desk: File) -> None:
    hands.put("a/b.md", "x")
    hands.put("c.md", "y")
    client.materialize(hands.agent, desk)
    hands.delete("a/b.md")

    assert client.materialize(hands.agent, desk).changed

    assert not (desk / "a").exists()
    assert held(desk) == hands.served()


def test_one_agents_files_never_stay_for_another(
    client: Client, http: httpx.Client, desk: File
) -> None:
    one, other = Hands.of_new_agent(http), Hands.of_new_agent(http)
    one.put("secret.md", "of one")
    other.put("own.md", "of the other")
    client.materialize(one.agent, desk)

    client.materialize(other.agent, desk)

    assert held(desk) == other.served()


def test_a_rename_of_the_agent_changes_the_fingerprint(
    client: Client, hands: Hands, desk: File
) -> None:
    hands.put("WHO.md", "I am {{AGENT_NAME}}.", of="templates")
    first = client.materialize(hands.agent, desk)

    hands.rename("Grace")
    second = client.materialize(hands.agent, desk)

    assert (desk / "WHO.md").read_text() == "I am Grace."
    assert second.changed
    assert first.fingerprint != second.fingerprint


def test_a_change_that_shows_nowhere_writes_no_file(live: Live, hands: Hands, desk: File) -> None:
    hands.put("a.md", "mine")
    wire = Wire()
    with over(wire, live.url) as client:
        first = client.materialize(hands.agent, desk)
        before = look(desk / "a.md")
        hands.put("a.md", "of the template, hidden", of="templates")
        second = client.materialize(hands.agent, desk)
        third = client.materialize(hands.agent, desk)

    assert wire.statuses == [200, 200, 304]
    assert (second.changed, third.changed) == (False, False)
    assert first.etag != second.etag == third.etag
    assert look(desk / "a.md") == before


def test_a_directory_of_somebody_else_is_left_alone(
    client: Client, hands: Hands, desk: File
) -> None:
    desk.mkdir(parents=True)
    (desk / "mine.txt").write_text("mine")

    for stale_ok in (False, True):
        with pytest.raises(NotACarrelDirectory):
            client.materialize(hands.agent, desk, stale_ok=stale_ok)

    assert os.listdir(desk) == ["mine.txt"]


def test_a_file_is_not_taken_for_a_directory(client: Client, hands: Hands, desk: File) -> None:
    desk.parent.mkdir()
    desk.write_text("mine")

    with pytest.raises(NotACarrelDirectory):
        client.materialize(hands.agent, desk)

    assert desk.read_text() == "mine"


def test_an_empty_directory_is_filled_and_keeps_its_mode(
    client: Client, hands: Hands, desk: File
) -> None:
    hands.put("a.md", "x")
    desk.mkdir(parents=True)
    desk.chmod(0o750)

    client.materialize(hands.agent, desk)

    assert held(desk) == hands.served()
    assert stat.S_IMODE(desk.stat().st_mode) == 0o750


def test_a_link_to_a_directory_stays_a_link(
    client: Client, hands: Hands, desk: File, tmp_path: File
) -> None:
    hands.put("a.md", "x")
    link = tmp_path / "link"
    link.symlink_to(desk)

    result = client.materialize(hands.agent, link)

    assert link.is_symlink()
    assert result.directory == str(desk)
    assert held(desk) == hands.served()


def test_a_mount_point_is_refused(client: Client, hands: Hands) -> None:
    for place in ("/", "/proc"):
        with pytest.raises(UnusableWorkspace, match="mount point"):
            client.materialize(hands.agent, place)


def test_a_failure_leaves_what_was_there(live: Live, hands: Hands, desk: File) -> None:
    hands.put("a.md", "x")
    wire = Wire()
    with over(wire, live.url) as client:
        kept = client.materialize(hands.agent, desk)
        before, wire.cut = look(desk), True

        with pytest.raises(ServerUnreachable):
            client.materialize(hands.agent, desk)
        stale = client.materialize(hands.agent, desk, stale_ok=True)

        assert look(desk) == before
        assert (stale.stale, stale.changed) == (True, False)
        assert isinstance(stale.problem, ServerUnreachable)
        assert (stale.files, stale.fingerprint) == (kept.files, kept.fingerprint)
        wire.cut = False
        assert not client.materialize(hands.agent, desk, stale_ok=True).stale


def test_stale_is_only_what_was_materialised_for_this_agent_and_is_whole(
    live: Live, hands: Hands, desk: File
) -> None:
    hands.put("a.md", "x")
    wire = Wire()
    with over(wire, live.url) as client:
        wire.cut = True
        with pytest.raises(ServerUnreachable):
            client.materialize(hands.agent, desk, stale_ok=True)
        assert not desk.exists()
        wire.cut = False
        client.materialize(hands.agent, desk)
        wire.cut = True
        with pytest.raises(ServerUnreachable):
            client.materialize("another", desk, stale_ok=True)
        (desk / "a.md").write_text("tampered")
        with pytest.raises(ServerUnreachable):
            client.materialize(hands.agent, desk, stale_ok=True)


def test_files_of_an_agent_are_never_taken_for_those_of_another_that_has_its_slug_now(
    live: Live, client: Client, hands: Hands, desk: File
) -> None:
    hands.put("a.md", "of the first")
    client.materialize(hands.agent, desk)
    before = look(desk)
    assert hands.http.delete(f"/v1/agents/{hands.agent}").status_code == 204
    made(hands.http.post("/v1/agents", json={"slug": hands.agent, "name": "Another"}))
    hands.put("a.md", "of the second")

    with Client(live.url, TOKEN, max_response_bytes=10) as small, pytest.raises(ResponseTooLarge):
        small.materialize(hands.agent, desk)
    with over(Spoiling(), live.url) as spoilt, pytest.raises(InvalidResponse):
        spoilt.materialize(hands.agent, desk, stale_ok=True)

    assert look(desk) == before
    assert client.materialize(hands.agent, desk, stale_ok=True).changed
    assert held(desk) == hands.served()


def test_files_of_the_same_agent_are_still_taken_when_the_listing_is_spoilt(
    live: Live, client: Client, hands: Hands, desk: File
) -> None:
    client.materialize(hands.agent, desk)
    hands.put("a.md", "newer")
    with over(Spoiling(), live.url) as spoilt:
        stale = spoilt.materialize(hands.agent, desk, stale_ok=True)
    assert (stale.stale, type(stale.problem)) == (True, InvalidResponse)


def test_an_agent_is_known_by_its_id_too_when_nobody_can_be_asked(
    live: Live, hands: Hands, desk: File
) -> None:
    id = made(hands.http.get(f"/v1/agents/{hands.agent}"))["id"]
    wire = Wire()
    with over(wire, live.url) as client:
        client.materialize(hands.agent, desk)
        assert not client.materialize(id, desk).changed
        assert wire.statuses == [200, 304]
        wire.cut = True
        for name in (id, hands.agent):
            assert client.materialize(name, desk, stale_ok=True).stale
        with pytest.raises(ServerUnreachable):
            client.materialize("agt_000000000000000000000000", desk, stale_ok=True)


@pytest.mark.parametrize("name", ["de\0sk", "\0", "\ud800"])
def test_what_is_no_name_of_a_directory_is_refused(
    client: Client, hands: Hands, tmp_path: File, name: str
) -> None:
    for stale_ok in (False, True):
        with pytest.raises(UnusableWorkspace, match="is no name of a directory"):
            client.materialize(hands.agent, tmp_path / "new" / name, stale_ok=stale_ok)
    assert os.listdir(tmp_path) == []


def test_an_agent_that_is_not_there_is_an_error(client: Client, desk: File) -> None:
    with pytest.raises(NotFound):
        client.materialize("nobody", desk)
    assert not desk.exists()


def test_two_at_once_do_not_get_in_each_others_way(
    live: Live, http: httpx.Client, desk: File
) -> None:
    both = [Hands.of_new_agent(http), Hands.of_new_agent(http)]
    for number, hands in enumerate(both):
        for name in range(20):
            hands.put(f"{number}/{name}.md", f"{number} {name}" * 100)

    def pull(number: int) -> None:
        with Client(live.url, TOKEN) as client:
            client.materialize(both[number % 2].agent, desk)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(pull, range(24))) == [None] * 24

    assert held(desk) in [hands.served() for hands in both]
    assert os.listdir(desk.parent / ".desk.carrel") == ["lock"]


def test_who_is_watching_is_told_of_every_file(client: Client, hands: Hands, desk: File) -> None:
    hands.put("a.md", "x")
    hands.put("b.md", "y")
    told: list[tuple[str, int, int]] = []

    result = client.materialize(
        hands.agent, desk, progress=lambda what, done, total: told.append((what, done, total))
    )

    total = len(result.files)
    assert told == [("writing files", number, total) for number in range(1, total + 1)]


@pytest.mark.anyio
async def test_many_can_await_one_directory(live: Live, hands: Hands, desk: File) -> None:
    hands.put("a.md", "x")
    async with AsyncClient(live.url, TOKEN) as client:
        results = await asyncio.gather(
            *(client.materialize(hands.agent, desk) for _ in range(5)),
            client.agent(hands.agent).materialize(desk),
        )
    assert [result.changed for result in results].count(True) == 1
    assert held(desk) == hands.served()


@pytest.mark.anyio
async def test_whoever_is_cancelled_leaves_nothing_half_done_and_no_lock(
    live: Live, hands: Hands, desk: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in range(10):
        hands.put(f"{name}.md", "x")
    loop, writing = asyncio.get_running_loop(), asyncio.Event()
    create = atomic_directory._create

    def noticed(path: str, content: bytes) -> None:
        loop.call_soon_threadsafe(writing.set)
        create(path, content)

    monkeypatch.setattr(atomic_directory, "_create", noticed)
    async with AsyncClient(live.url, TOKEN) as client:
        task = asyncio.create_task(client.materialize(hands.agent, desk))
        await writing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert held(desk) in ({}, hands.served())
        assert os.listdir(desk.parent / ".desk.carrel") == ["lock"]
        await client.materialize(hands.agent, desk)
    assert held(desk) == hands.served()
