"""Files of an agent by the blocking client, against a running server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.client.server_fixture import AgentEditor, FaultyTransport, client_over
from tests.support.server_process import ServerProcess

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
def test_paths_with_special_characters_are_written_read_and_deleted(
    client: Client, editor: AgentEditor, path: str
) -> None:
    agent = client.agent(editor.agent)

    put = agent.put(path, "one\r\ntwo\u2028\n", reason="because ünicode €", if_none_match="*")
    got = agent.get(path)

    assert (put.path, put.version, put.content) == (path, 1, "one\r\ntwo\u2028\n")
    assert got == put
    assert (got.source, got.file_class, got.sha256) == ("agent-override", "live", put.sha256)
    assert path in {row.path for row in agent.list()}
    assert agent.read()[path] == put.content
    agent.delete(path, if_match=got.etag)
    with pytest.raises(NotFound):
        agent.get(path)
    assert agent.get(path, version=1).content == put.content


def test_listing_has_content_only_on_request(client: Client, editor: AgentEditor) -> None:
    editor.put("WHO.md", "I am {{AGENT_NAME}}", of="templates")
    editor.put("notes/a.md", "a")
    agent = client.agent(editor.agent)

    [bare] = agent.list("WHO")
    [full] = agent.list("WHO", content=True)
    [raw] = agent.list("WHO", content=True, raw=True)

    assert not isinstance(bare, File)
    assert isinstance(full, File)
    assert isinstance(raw, File)
    assert (full.content, raw.content) == ("I am Ada", "I am {{AGENT_NAME}}")
    assert full.source == "template"
    assert full.rendered_sha256 not in {None, full.sha256}
    assert agent.get("WHO.md", raw=True).content == "I am {{AGENT_NAME}}"
    assert list(agent.read("notes/")) == ["notes/a.md"]


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        (NotFound, lambda agent: agent.agent("unknown").list()),
        (NotFound, lambda agent: agent.agent("..").list()),
        (NotFound, lambda agent: agent.run("run_nothing")),
        (ValidationError, lambda agent: agent.agent("").list()),
        (ValidationError, lambda agent: agent.agent("ada").put("x", "\ud800")),
        (ValidationError, lambda agent: agent.start_run()),
        (ValidationError, lambda agent: agent.agent("ada").put("x", "y", reason="a\nb")),
        (ValidationError, lambda agent: agent.agent("ada").put("x", "y", if_match="\ud800")),
        (ValidationError, lambda agent: agent.agent("ada").list("\ud800")),
        (ValidationError, lambda agent: agent.agent("ada").get("x" * 100_000)),
        (ValidationError, lambda agent: agent.start_run("\ud800")),
    ],
)
def test_refusal_has_the_class_of_its_code(
    client: Client, kind: type[CarrelError], ask: Callable[[Client], Any]
) -> None:
    with pytest.raises(kind):
        ask(client)


def test_invalid_path_is_refused(client: Client, editor: AgentEditor) -> None:
    for path in ("..", ".", "../x", "a/../b", "/a", "a\\b"):
        with pytest.raises(ValidationError):
            client.agent(editor.agent).put(path, "x")


def test_too_large_file_is_refused_with_the_limit(client: Client, editor: AgentEditor) -> None:
    with pytest.raises(WorkspaceTooLarge) as refusal:
        client.agent(editor.agent).put("big.md", "x" * (2**20 + 1))
    assert refusal.value.details["maxBytes"] == 2**20


def test_wrong_token_is_unauthenticated(live: ServerProcess, editor: AgentEditor) -> None:
    with Client(live.url, "wrong") as stranger, pytest.raises(Unauthenticated) as refusal:
        stranger.agent(editor.agent).list()
    assert refusal.value.status == 401


@pytest.mark.parametrize(
    ("url", "token"),
    [
        *(("", "t"), ("carrel", "t"), ("ftp://x", "t"), ("http://", "t"), ("http://x:99999", "t")),
        *(("http://x", ""), ("http://x", "a\nb"), ("http://x", "ü")),
    ],
)
def test_client_refuses_an_invalid_url_or_token(url: str, token: str) -> None:
    with pytest.raises(ValidationError):
        Client(url, token)


def test_repr_shows_no_credential() -> None:
    with Client("http://me:word@127.0.0.1:1/base/", "topsecret") as client:
        assert repr(client) == "<Client of http://127.0.0.1:1/base>"
        assert repr(client.agent("ada")) == "<AgentWorkspace ada at http://127.0.0.1:1/base>"


def test_write_memory_accepts_three_files_only(live: ServerProcess, editor: AgentEditor) -> None:
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        agent = client.agent(editor.agent)
        for name in ("lessons.md", "preferences.md", "contacts.md"):
            assert agent.write_memory(name, f"of {name}").path == f"memory/{name}"
            assert agent.get(f"memory/{name}").content == f"of {name}"
        request_count = len(transport.requests)
        for name in ("other.md", "memory/lessons.md", "../lessons.md", "LESSONS.md", "", "lessons"):
            with pytest.raises(ValidationError):
                agent.write_memory(name, "x")
        assert len(transport.requests) == request_count


def test_write_with_a_lost_response_is_done_once(
    live: ServerProcess, editor: AgentEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.001)
    transport = FaultyTransport(lose_answers=1, lose_requests=1)
    with client_over(transport, live.url) as client:
        agent = client.agent(editor.agent)
        put = agent.put("a.md", "x", if_none_match="*")
        assert (put.version, len(transport.requests)) == (1, 3)
        transport.lose_answers = 1
        agent.delete("a.md", if_match=put.etag)
        with pytest.raises(NotFound):
            agent.get("a.md")


def test_lost_connection_raises_server_unreachable(
    live: ServerProcess, editor: AgentEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.001)
    transport = FaultyTransport(cut=True)
    with client_over(transport, live.url) as client, pytest.raises(ServerUnreachable) as problem:
        client.agent(editor.agent).list()
    assert (problem.value.status, len(transport.requests)) == (None, requests.MAX_ATTEMPTS)
