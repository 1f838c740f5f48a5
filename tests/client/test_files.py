"""An agent's files and runs by way of the client, over a live server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.client.server_fixture import Hands, Wire, over
from tests.support.server_process import Live

from carrel_client import (
    CarrelError,
    Client,
    File,
    NotFound,
    ServerUnreachable,
    Unauthenticated,
    ValidationError,
    WorkspaceTooLarge,
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
    with pytest.raises(WorkspaceTooLarge) as refusal:
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
        assert repr(client.agent("ada")) == "<AgentWorkspace ada at http://127.0.0.1:1/base>"


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
