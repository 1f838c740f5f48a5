"""Sessions by way of the client and of ``carrel sessions``, over a live server."""

from __future__ import annotations

import json
from subprocess import CompletedProcess
from typing import Any

import httpx
import pytest
from tests.client.cli_runner import finished
from tests.client.server_fixture import Hands, Wire, over
from tests.support.server_process import TOKEN, Live

from carrel_client import Client, InvalidResponse


def carrel(live: Live, *arguments: object) -> CompletedProcess[str]:
    return finished(*arguments, url=live.url, token=TOKEN)


def test_what_was_said_over_a_bad_line_is_said_once(live: Live, hands: Hands) -> None:
    wire = Wire()
    with over(wire, live.url) as client:
        session = client.agent(hands.agent).sessions.start()
        wire.lose_answers = 2
        assert session.append("user", "hello").number == 1
        wire.lose_requests = 2
        assert session.append("user", "again").number == 2
        assert len(session.lines()) == 3


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'{"items": [1]}', b'{"items": [{"id": "x"}]}', b"x", b"\xff\n"]
)
def test_an_answer_that_is_no_session_is_garbled(body: bytes) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=body)

    with Client("http://carrel", TOKEN, transport=httpx.MockTransport(answer)) as client:
        known = client.agent("kate").sessions
        for ask in (known.list, known.start, lambda: known.get("x")):
            with pytest.raises(InvalidResponse):
                ask()


def test_the_command_lists_shows_searches_and_exports(
    live: Live, client: Client, hands: Hands
) -> None:
    known = client.agent(hands.agent).sessions
    first, second = known.start(source_plugin="web"), known.start(scope="group")
    for n in range(4):
        first.append("user", f"question {n}\x1b[31m\nsecond line")
    second.append("assistant", "an answer")
    second.close()

    listed = carrel(live, "sessions", hands.agent).stdout.splitlines()
    assert [line.split()[0] for line in listed] == [second.id, first.id]
    assert listed[0].endswith("1 entries, shared")
    assert listed[1].endswith("4 entries, main, web, open")
    main = carrel(live, "sessions", hands.agent, "--scope", "main", "--json").stdout
    assert [row["id"] for row in json.loads(main)] == [first.id]
    found = carrel(live, "sessions", hands.agent, "--search", "answ").stdout.splitlines()
    assert [line.split()[-1] for line in found] == ["shared", "answer"]

    shown = carrel(live, "sessions", hands.agent, first.id, "--limit", 2).stdout
    assert "\x1b" not in shown
    lines = [line.strip() for line in shown.splitlines()]
    assert [line for line in lines if "question" in line or "second" in line] == [
        "question 2\ufffd[31m",
        "second line",
        "question 3\ufffd[31m",
        "second line",
    ]
    told: dict[str, Any] = json.loads(
        carrel(live, "sessions", hands.agent, first.id, "--json").stdout
    )
    assert [entry["number"] for entry in told["entries"]] == [1, 2, 3, 4]
    exported = carrel(live, "sessions", hands.agent, first.id, "--jsonl").stdout
    assert tuple(exported.split("\n")[:-1]) == first.lines()


def test_the_command_says_what_is_wrong(live: Live, hands: Hands) -> None:
    for arguments, code in (
        (("nobody",), 1),
        ((hands.agent, "x"), 1),
        ((hands.agent, "--jsonl"), 2),
        ((hands.agent, "x", "--search", "y"), 2),
    ):
        done = carrel(live, "sessions", *arguments)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.splitlines()[-1].startswith("Error: ")
