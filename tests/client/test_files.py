"""An agent's files and runs by way of the client, over a live server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import Hands, Wire, made, over
from tests.e2e.servers import TOKEN, Live

from carrel_client import (
    AsyncClient,
    CarrelError,
    Client,
    File,
    Forbidden,
    ValidationError,
    NotFound,
    ServerUnreachable,
    WorkspaceConflict,
    Conflict,
    TooLarge,
    Unauthenticated,
    requests,
)

PATHS = [
    "MANNERS.md",
    "notes/monday.md",
    "notes/history",
    "100%.md",
    "ä/é ?#&.md",
    "a/explain/diff",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_file_is_written_read_listed_and_removed(client: Client, hands: Hands, path: str) -> None:
    desk = client.agent(hands.agent)

    put = desk.put(path, "one\r\ntwo\u2028\n", reason="because ünicode €", if_none_match="*")
    got = desk.get(path)

    assert (put.path, put.version, put.content) == (path, 1, "one\r\ntwo\u2028\n")
    assert got == put
    assert (got.source, got.file_class, got.sha256) == ("agent-override", "live", put.sha256)
    assert path in {row.path for row in desk.list()}
    assert desk.read()[path] == put.content
    desk.delete(path, if_match=got.etag)
    with pytest.raises(NotFound):
        desk.get(path)
    assert desk.get(path, version=1).content == put.content


def test_a_listing_holds_content_only_where_it_is_asked_for(client: Client, hands: Hands) -> None:
    hands.put("WHO.md", "I am {{AGENT_NAME}}", of="templates")
    hands.put("notes/a.md", "a")
    desk = client.agent(hands.agent)

    [bare] = desk.list("WHO")
    [full] = desk.list("WHO", content=True)
    [raw] = desk.list("WHO", content=True, raw=True)

    assert not isinstance(bare, File)
    assert isinstance(full, File)
    assert isinstance(raw, File)
    assert (full.content, raw.content) == ("I am Ada", "I am {{AGENT_NAME}}")
    assert full.source == "template"
    assert full.rendered_sha256 not in {None, full.sha256}
    assert desk.get("WHO.md", raw=True).content == "I am {{AGENT_NAME}}"
    assert list(desk.read("notes/")) == ["notes/a.md"]


def test_a_write_that_saw_something_else_is_refused(client: Client, hands: Hands) -> None:
    desk = client.agent(hands.agent)
    first = desk.put("a.md", "1")
    desk.put("a.md", "2", if_match=first.etag)

    for attempt in (
        lambda: desk.put("a.md", "3", if_match=first.etag),
        lambda: desk.delete("a.md", if_match=first.etag),
        lambda: desk.put("a.md", "3", if_none_match="*"),
    ):
        with pytest.raises(WorkspaceConflict) as refusal:
            attempt()
        assert refusal.value.current_version == 2
        assert (refusal.value.status, refusal.value.code) == (409, "workspace_conflict")


def test_a_pinned_file_is_overridden_only_on_purpose(client: Client, http: httpx.Client) -> None:
    before = Hands.of_new_agent(http)
    before.put("GUARDRAILS.md", "Be careful.", of="templates")
    agent = f"{before.agent}-b"
    body = {"slug": agent, "name": "Bea", "templateId": before.template}
    made(http.post("/v1/agents", json=body))
    desk = client.agent(agent)

    with pytest.raises(Forbidden):
        desk.put("GUARDRAILS.md", "Be bold.")
    assert desk.get("GUARDRAILS.md").content == "Be careful."

    put = desk.put("GUARDRAILS.md", "Be bold.", accept_template_update=True)

    assert (put.file_class, put.content) == ("pinned", "Be bold.")
    assert desk.get("GUARDRAILS.md").content == "Be bold."


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        (NotFound, lambda desk: desk.agent("nobody").list()),
        (NotFound, lambda desk: desk.agent("..").list()),
        (NotFound, lambda desk: desk.run("run_nothing")),
        (ValidationError, lambda desk: desk.agent("").list()),
        (ValidationError, lambda desk: desk.agent("ada").put("x", "\ud800")),
        (ValidationError, lambda desk: desk.agent("ada").put("x", b"\xff")),
        (ValidationError, lambda desk: desk.start_run()),
        (ValidationError, lambda desk: desk.agent("ada").put("x", "y", reason="a\nb")),
        (ValidationError, lambda desk: desk.agent("ada").put("x", "y", if_match="\ud800")),
        (ValidationError, lambda desk: desk.agent("ada").list("\ud800")),
        (ValidationError, lambda desk: desk.agent("ada").get("x" * 100_000)),
        (ValidationError, lambda desk: desk.start_run("\ud800")),
    ],
)
def test_what_is_refused_is_an_error_of_its_kind(
    client: Client, kind: type[CarrelError], ask: Callable[[Client], Any]
) -> None:
    with pytest.raises(kind):
        ask(client)


def test_a_path_that_is_none_leads_nowhere_else(client: Client, hands: Hands) -> None:
    for path in ("..", ".", "../x", "a/../b", "/a", "a\\b"):
        with pytest.raises(ValidationError):
            client.agent(hands.agent).put(path, "x")


def test_a_file_that_is_too_large_is_told_with_its_limit(client: Client, hands: Hands) -> None:
    with pytest.raises(TooLarge) as refusal:
        client.agent(hands.agent).put("big.md", "x" * (2**20 + 1))
    assert refusal.value.details["maxBytes"] == 2**20


def test_a_wrong_token_is_told_apart(live: Live, hands: Hands) -> None:
    with Client(live.url, "wrong") as stranger, pytest.raises(Unauthenticated) as refusal:
        stranger.agent(hands.agent).list()
    assert refusal.value.status == 401


@pytest.mark.parametrize(
    ("url", "token"),
    [
        *(("", "t"), ("carrel", "t"), ("ftp://x", "t"), ("http://", "t"), ("http://x:99999", "t")),
        *(("http://x", ""), ("http://x", "a\nb"), ("http://x", "ü")),
    ],
)
def test_a_client_is_not_made_for_what_is_no_server_or_no_token(url: str, token: str) -> None:
    with pytest.raises(ValidationError):
        Client(url, token)


def test_a_client_shows_no_secret() -> None:
    with Client("http://me:word@127.0.0.1:1/base/", "topsecret") as client:
        assert repr(client) == "<Client of http://127.0.0.1:1/base>"
        assert repr(client.agent("ada")) == "<Workspace of ada at http://127.0.0.1:1/base>"


def test_memory_is_three_files_and_nothing_else(live: Live, hands: Hands) -> None:
    wire = Wire()
    with over(wire, live.url) as client:
        desk = client.agent(hands.agent)
        for name in ("lessons.md", "preferences.md", "contacts.md"):
            assert desk.write_memory(name, f"of {name}").path == f"memory/{name}"
            assert desk.get(f"memory/{name}").content == f"of {name}"
        asked = len(wire.seen)
        for name in ("other.md", "memory/lessons.md", "../lessons.md", "LESSONS.md", "", "lessons"):
            with pytest.raises(ValidationError):
                desk.write_memory(name, "x")
        assert len(wire.seen) == asked


def test_a_run_reads_what_was_there_when_it_began(client: Client, hands: Hands) -> None:
    desk = client.agent(hands.agent)
    desk.put("notes/a.md", "before")

    run = desk.start_run("nightly")
    desk.put("notes/a.md", "after", run=run.id)
    desk.put("notes/b.md", "new")

    assert run.status == "running"
    assert run.workspace.get("notes/a.md").content == "before"
    assert "notes/b.md" not in {row.path for row in run.workspace.list()}
    with pytest.raises(NotFound):
        run.workspace.get("notes/b.md")
    found = client.run(run.id)
    assert {"path": "notes/a.md", "version": 1} in found.facts["workspace"]
    assert found.workspace.list() == run.workspace.list()
    assert run.finish().status == "completed"
    assert found.refresh().status == "completed"
    with pytest.raises(Conflict):
        run.finish("failed")


def test_a_run_may_follow_another(client: Client, hands: Hands) -> None:
    desk = client.agent(hands.agent)
    desk.put("a.md", "before")
    run = client.start_run(agent=hands.agent)
    desk.put("a.md", "after")

    again = client.start_run(replay_of=run.id)
    child = client.start_run(parent=run.id)
    twin = client.start_run(parent=run.id, share_snapshot=True)

    read = [each.workspace.get("a.md").content for each in (again, child, twin)]
    assert read == ["before", "after", "before"]


def test_a_write_whose_answer_was_lost_is_done_once(
    live: Live, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.001)
    wire = Wire(lose_answers=1, lose_requests=1)
    with over(wire, live.url) as client:
        desk = client.agent(hands.agent)
        put = desk.put("a.md", "x", if_none_match="*")
        assert (put.version, len(wire.seen)) == (1, 3)
        wire.lose_answers = 1
        desk.delete("a.md", if_match=put.etag)
        with pytest.raises(NotFound):
            desk.get("a.md")


def test_a_server_that_is_gone_is_told_so(
    live: Live, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.001)
    wire = Wire(cut=True)
    with over(wire, live.url) as client, pytest.raises(ServerUnreachable) as problem:
        client.agent(hands.agent).list()
    assert (problem.value.status, len(wire.seen)) == (None, requests.MAX_ATTEMPTS)


@pytest.mark.anyio
async def test_everything_can_be_awaited(live: Live, hands: Hands) -> None:
    async with AsyncClient(live.url, TOKEN) as client:
        desk = client.agent(hands.agent)
        put = await desk.put("a.md", "x")
        assert await desk.get("a.md") == put
        assert "a.md" in {row.path for row in await desk.list()}
        run = await desk.start_run()
        await desk.delete("a.md")
        assert (await run.workspace.get("a.md")).content == "x"
        assert (await (await client.run(run.id)).finish()).status == "completed"
        with pytest.raises(NotFound):
            await desk.get("a.md")
        with pytest.raises(ValidationError):
            await desk.write_memory("x.md", "x")
