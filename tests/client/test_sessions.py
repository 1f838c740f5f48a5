"""Sessions over a faulty network, and ``carrel sessions``."""

from __future__ import annotations

import json
from pathlib import Path as File
from subprocess import CompletedProcess
from typing import Any

import httpx
import pytest
from tests.client.cli_runner import run_command
from tests.client.server_fixture import AgentEditor, FaultyTransport, client_over
from tests.support.server_process import TOKEN, ServerProcess

from carrel_client import Client, InvalidResponse, NewEntry


def carrel(live: ServerProcess, *arguments: object) -> CompletedProcess[str]:
    return run_command(*arguments, url=live.url, token=TOKEN)


def test_entry_with_a_lost_response_is_appended_once(
    live: ServerProcess, editor: AgentEditor
) -> None:
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        session = client.agent(editor.agent).sessions.start()
        transport.lose_answers = 2
        assert session.append("user", "hello").number == 1
        transport.lose_requests = 2
        assert session.append("user", "again").number == 2
        assert len(session.lines()) == 3


def test_session_is_deleted_even_if_the_first_response_is_lost(
    live: ServerProcess, editor: AgentEditor
) -> None:
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        session = client.agent(editor.agent).sessions.start()
        transport.lose_answers = 1
        session.delete()
        assert client.agent(editor.agent).sessions.list() == ()


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'{"items": [1]}', b'{"items": [{"id": "x"}]}', b"x", b"\xff\n"]
)
def test_response_that_is_not_a_session_is_invalid(body: bytes) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=body)

    with Client("http://carrel", TOKEN, transport=httpx.MockTransport(respond)) as client:
        sessions = client.agent("kate").sessions
        for ask in (sessions.list, sessions.start, lambda: sessions.get("x")):
            with pytest.raises(InvalidResponse):
                ask()


def test_sessions_are_listed_printed_searched_and_exported(
    live: ServerProcess, client: Client, editor: AgentEditor
) -> None:
    sessions = client.agent(editor.agent).sessions
    first, second = sessions.start(source_plugin="web"), sessions.start(scope="group")
    for n in range(4):
        first.append("user", f"question {n}\x1b[31m\nsecond line")
    second.append("assistant", "an answer")
    second.close()

    listed = carrel(live, "sessions", editor.agent).stdout.splitlines()
    assert [line.split()[0] for line in listed] == [second.id, first.id]
    assert listed[0].endswith("1 entries, shared")
    assert listed[1].endswith("4 entries, main, web, open")
    main = carrel(live, "sessions", editor.agent, "--scope", "main", "--json").stdout
    assert [row["id"] for row in json.loads(main)] == [first.id]
    matches = carrel(live, "sessions", editor.agent, "--search", "answ").stdout.splitlines()
    assert [line.split()[-1] for line in matches] == ["shared", "answer"]

    output = carrel(live, "sessions", editor.agent, first.id, "--limit", 2).stdout
    assert "\x1b" not in output
    lines = [line.strip() for line in output.splitlines()]
    assert [line for line in lines if "question" in line or "second" in line] == [
        "question 2⟨U+001B⟩[31m",
        "second line",
        "question 3⟨U+001B⟩[31m",
        "second line",
    ]
    report: dict[str, Any] = json.loads(
        carrel(live, "sessions", editor.agent, first.id, "--json").stdout
    )
    assert [entry["number"] for entry in report["entries"]] == [1, 2, 3, 4]
    exported = carrel(live, "sessions", editor.agent, first.id, "--jsonl").stdout
    assert tuple(exported.split("\n")[:-1]) == first.lines()


def test_entries_are_appended_removed_and_cleared(
    live: ServerProcess, client: Client, editor: AgentEditor, tmp_path: File
) -> None:
    session = client.agent(editor.agent).sessions.start("user/42")
    file = tmp_path / "entries.json"

    def change(name: str, *arguments: object) -> CompletedProcess[str]:
        return carrel(live, "entries", name, editor.agent, "user/42", *arguments)

    rows = [{"role": "user", "content": f"{n}\x1b", "messageId": f"m{n}"} for n in range(3)]
    file.write_text(json.dumps(rows))
    assert change("append", file).stdout == "3 entries appended: 1 to 3\n"
    assert [entry.message_id for entry in session.recent()] == ["m0", "m1", "m2"]
    stored = json.loads(change("append", file, "--json").stdout)["items"]
    assert [entry["number"] for entry in stored] == [4, 5, 6]
    assert change("pop").stdout.splitlines()[1].strip() == "2⟨U+001B⟩"
    assert json.loads(change("pop", "--json").stdout)["entry"]["messageId"] == "m1"
    file.write_text('[{"role": "tool", "item": {"n": 1}}]')
    assert change("append", file).stdout == "1 entry appended: 7\n"
    assert '{"n": 1}' in carrel(live, "sessions", editor.agent, "user/42").stdout
    assert '{"n": 1}' in change("pop").stdout
    assert change("clear").returncode == 1
    assert session.refresh().entry_count == 4
    assert change("clear", "--yes").stdout == "user/42: 0 entries\n"
    assert session.refresh().entry_count == 0
    assert change("pop").stdout == "the session has no entries\n"
    for text in ("x", "{}", "[]", '[{"content": "no role"}]', '[{"role": "user", "other": 1}]'):
        file.write_text(text)
        assert change("append", file).returncode == 2
    file.write_text('[{"role": "user", "content": "x"}, {"role": "nobody", "content": "x"}]')
    assert change("append", file).returncode == 1
    assert session.refresh().entry_count == 0
    assert carrel(live, "entries", "pop", editor.agent, "none").returncode == 1


def test_errors_of_sessions_are_one_line(live: ServerProcess, editor: AgentEditor) -> None:
    for arguments, code in (
        (("unknown",), 1),
        ((editor.agent, "x"), 1),
        ((editor.agent, "--jsonl"), 2),
        ((editor.agent, "x", "--search", "y"), 2),
    ):
        done = carrel(live, "sessions", *arguments)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.splitlines()[-1].startswith("Error: ")


def test_batch_and_removal_with_lost_responses_happen_once(
    live: ServerProcess, editor: AgentEditor
) -> None:
    transport = FaultyTransport()
    with client_over(transport, live.url) as client:
        session = client.agent(editor.agent).sessions.start("any text")
        entries = [NewEntry(role="user", content=f"{n}") for n in range(5)]
        transport.lose_answers = 2
        assert [entry.number for entry in session.append_all(entries)] == [1, 2, 3, 4, 5]
        transport.lose_answers = 2
        popped = session.pop()
        assert popped is not None
        assert popped.number == 5
        transport.lose_requests = 2
        assert len(session.recent(10)) == 4
        transport.lose_answers = 2
        run = client.agent(editor.agent).start_run(session_id="any text", include=["prompt"])
        assert run.parts is not None
        assert run.parts.prompt is not None
        assert [item.id for item in client.agent(editor.agent).runs()] == [run.id]


@pytest.mark.parametrize(
    "body", [b"{}", b'{"number": 1}', b'{"number": 1, "entry": []}', b"[]", b'{"items": {}}']
)
def test_response_that_is_not_an_entry_is_invalid(body: bytes) -> None:
    facts = {"id": "s", "agentId": "a", "scope": "main", "entryCount": 0}

    def respond(request: httpx.Request) -> httpx.Response:
        is_session = request.url.path.endswith("/s") or request.url.path.endswith("/sessions")
        return httpx.Response(200, json=facts) if is_session else httpx.Response(200, content=body)

    with Client("http://carrel", TOKEN, transport=httpx.MockTransport(respond)) as client:
        session = client.agent("kate").sessions.get("s")
        entry = NewEntry(role="user", content="x")
        asks: list[Any] = [session.pop, lambda: session.append_all([entry]), session.recent]
        for ask in (*asks, lambda: session.provenance(1)):
            with pytest.raises(InvalidResponse):
                ask()
