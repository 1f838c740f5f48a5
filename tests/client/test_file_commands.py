"""``carrel ls``, ``cat``, ``put``, ``rm``, ``log``, ``diff`` and ``explain``, over the wire."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path as Local

import pytest
from tests.client.cli_runner import Carrel
from tests.client.server_fixture import Hands

NOBODY = "http://127.0.0.1:1"
WATCHED = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}


def test_files_are_listed_with_where_they_come_from(hands: Hands, carrel: Carrel) -> None:
    hands.put("notes/a.md", "a")
    hands.put("notes.md", "b")
    hands.put("SOUL.md", "c", "templates")
    assert {"notes/a.md", "notes.md", "SOUL.md"} <= set(carrel.said("ls", hands.agent).split())
    assert carrel.said("ls", f"{hands.agent}/notes") == "notes/a.md\n"
    assert carrel.said("ls", f"templates/{hands.template}") == "SOUL.md\n"
    assert carrel("ls", f"{hands.agent}/note").exit_code == 1
    long = carrel.said("ls", hands.agent, "--long")
    assert re.search(r"^SOUL.md +1 +template +live +20\d\d-\d\d-\d\dT[\d:]+Z$", long, re.M)
    told = carrel.told("ls", f"agents/{hands.agent}/notes.md")["files"]
    assert [(row["path"], row["source"], row["version"]) for row in told] == [
        ("notes.md", "agent-override", 1)
    ]


def test_a_file_comes_to_the_byte_as_served_as_stored_or_as_it_was(
    hands: Hands, carrel: Carrel
) -> None:
    file = f"{hands.agent}/SOUL.md"
    hands.put("SOUL.md", "first\r\n")
    hands.put("SOUL.md", "I am {{AGENT_NAME}}\x1b[31m, no newline")
    assert carrel("cat", file).stdout_bytes == b"I am Ada\x1b[31m, no newline"
    assert carrel("cat", file, "--raw").stdout_bytes.startswith(b"I am {{AGENT_NAME}}")
    assert carrel("cat", file, "--version", 1).stdout_bytes == b"first\r\n"
    assert carrel.told("cat", file, "--raw")["sha256"] == (
        hashlib.sha256(b"I am {{AGENT_NAME}}\x1b[31m, no newline").hexdigest()
    )


def test_on_a_terminal_nothing_in_a_file_makes_it_do_something(
    hands: Hands, carrel: Carrel
) -> None:
    hands.put("SOUL.md", "a\x1b]0;owned\x07b\r\n")
    assert (
        carrel.said("cat", f"{hands.agent}/SOUL.md", **WATCHED) == "a\ufffd]0;owned\ufffdb\ufffd\n"
    )
    hands.put("SOUL.md", "c\x1b[2J\n")
    shown = carrel.said("diff", f"{hands.agent}/SOUL.md", **WATCHED)
    assert "\x1b[32m+c\ufffd[2J\x1b[0m\n" in shown
    assert "just now" in carrel.said("log", f"{hands.agent}/SOUL.md", **WATCHED)


def test_a_file_is_put_from_standard_input_or_another_file(
    hands: Hands, carrel: Carrel, tmp_path: Local
) -> None:
    file, local = f"{hands.agent}/notes/a.md", tmp_path / "a.md"
    said = carrel.said("put", file, input="one\n")
    assert re.fullmatch(rf"{file}: version 1, agent-override, \S+\n", said)
    local.write_bytes(b"two")
    assert carrel.told("put", file, local, "--reason", "for tèsts")["version"] == 2
    assert carrel.said("cat", file) == "two"
    [newest, first] = carrel.told("log", file)["versions"]
    assert (newest["reason"], first["version"], first["size"]) == ("for tèsts", 1, 4)
    assert carrel.said("put", f"templates/{hands.template}/T.md", input="t").endswith("\n")
    assert carrel.said("cat", f"{hands.agent}/T.md") == "t"


def test_what_is_not_text_is_refused(hands: Hands, carrel: Carrel) -> None:
    done = carrel("put", f"{hands.agent}/notes/a.md", input=b"\xff\x00")
    assert (done.exit_code, done.stderr) == (1, "Error: the content is not valid UTF-8\n")
    assert (
        carrel("put", f"{hands.agent}/notes/a.md", "--reason", "two\nlines", input="").exit_code
        == 1
    )
    assert carrel("cat", f"{hands.agent}/notes/a.md").exit_code == 1


def test_a_condition_that_does_not_hold_writes_nothing(hands: Hands, carrel: Carrel) -> None:
    file = f"{hands.agent}/notes/a.md"
    seen = carrel.told("put", file, "--new", input="one")["etag"]
    assert carrel("put", file, "--new", input="other").exit_code == 1
    assert carrel("put", file, "--if-match", seen.strip('"'), input="two").exit_code == 0
    late = carrel("put", file, "--if-match", seen, input="three")
    assert (late.exit_code, late.stdout) == (1, "")
    assert late.stderr.startswith("Error: ")
    assert carrel.told("put", file, "--if-match", seen, code=1, input="three")["ok"] is False
    assert carrel("rm", file, "--if-match", seen).exit_code == 1
    assert carrel.said("cat", file) == "two"


def test_an_earlier_version_becomes_the_newest_again(hands: Hands, carrel: Carrel) -> None:
    file = f"{hands.agent}/notes/a.md"
    for text in ("one\n", "two\n"):
        carrel.said("put", file, input=text)
    assert carrel.told("put", file, "--from-version", 1)["version"] == 3
    assert carrel.said("cat", file) == "one\n"
    assert carrel("put", file, "--from-version", 9).exit_code == 1
    assert "-two\n+one\n" in carrel.said("diff", file)
    assert "-one\n+two\n" in carrel.said("diff", file, "--from", 1, "--to", 2)
    assert carrel.told("diff", file, "--from", 1, "--to", 3)["diff"] == ""


def test_a_pinned_file_is_overridden_only_on_request(hands: Hands, carrel: Carrel) -> None:
    file = f"{hands.agent}/GUARDRAILS.md"
    done = carrel("put", file, input="all is allowed")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "GUARDRAILS.md is pinned: --accept" in done.stderr
    assert "managed" in carrel("put", f"{hands.agent}/USER.md", input="mine").stderr
    assert carrel.told("put", file, "--accept", input="mine")["source"] == "agent-override-pinned"


def test_a_secret_that_was_redacted_is_told(hands: Hands, carrel: Carrel) -> None:
    done = carrel("put", f"{hands.agent}/notes/a.md", input=f"AKIA{'Z' * 16}\n")
    assert done.exit_code == 0
    assert "redacted" in done.stderr


def test_removing_a_file_shows_what_lies_beneath(hands: Hands, carrel: Carrel) -> None:
    file = f"{hands.agent}/SOUL.md"
    hands.put("SOUL.md", "ours", "templates")
    hands.put("SOUL.md", "mine")
    assert (
        carrel.said("rm", file, "--reason", "enough") == f"{file}: removed; template shows again\n"
    )
    assert carrel.said("cat", file) == "ours"
    assert carrel("rm", file).exit_code == 1
    assert carrel.told("log", file)["versions"][0]["deleted"] is True
    carrel.said("put", f"{hands.agent}/own.md", input="x")
    assert carrel.told("rm", f"{hands.agent}/own.md")["source"] is None


def test_history_is_told_in_full_however_long(hands: Hands, carrel: Carrel) -> None:
    for number in range(5):
        hands.put("notes/a.md", str(number))
    told = carrel.told("log", f"{hands.agent}/notes/a.md")["versions"]
    assert [row["version"] for row in told] == [5, 4, 3, 2, 1]
    some = carrel.said("log", f"{hands.agent}/notes/a.md", "--limit", 2)
    assert re.findall(r"^ *(\d)  ", some, re.M) == ["5", "4"]


def test_it_is_explained_who_won(hands: Hands, carrel: Carrel) -> None:
    hands.put("SOUL.md", "ours", "templates")
    said = carrel.said("explain", f"{hands.agent}/SOUL.md")
    assert re.search(r"^template +\S+ +1 +[0-9a-f]{12}$", said, re.M)
    assert said.endswith("template: template decides, since agent says nothing of it\n")
    told = carrel.told("explain", f"{hands.agent}/SOUL.md")
    assert [layer["kind"] for layer in told["layers"]] == ["agent", "template", "defaults"]


@pytest.mark.parametrize("command", ["ls", "cat", "put", "rm", "log", "diff", "explain"])
def test_what_goes_wrong_is_said_in_a_line_and_an_exit_code(command: str, carrel: Carrel) -> None:
    where = "no-such-agent" if command == "ls" else "no-such-agent/a.md"
    none = carrel(command, where, input="")
    assert (none.exit_code, none.stdout) == (1, "")
    assert none.stderr == "Error: there is no agent no-such-agent\n"
    assert carrel.told(command, where, code=1, input="") == {
        "ok": False,
        "problem": "there is no agent no-such-agent",
    }
    assert carrel(command, "finn/../a.md", input="").exit_code == 2
    assert carrel(command, where, input="", CARREL_TOKEN="").exit_code == 1


def test_a_server_that_is_not_there_is_said(carrel: Carrel) -> None:
    done = carrel("ls", "finn", "--url", NOBODY)
    assert done.exit_code == 1
    assert "the server does not answer" in done.stderr
    assert carrel("cat", "finn").exit_code == 2
    assert carrel("put", "finn/a.md", "/no/such/file").exit_code == 1
    assert carrel("put", "finn/a.md", "--new", "--if-match", "*", input="").exit_code == 2


def test_records_are_listed(hands: Hands, carrel: Carrel) -> None:
    assert re.search(rf"^{hands.agent} +Ada +{hands.template} ", carrel.said("agents"), re.M)
    [mine] = carrel.told("agents", "--template", hands.template)["agents"]
    assert (mine["slug"], mine["name"]) == (hands.agent, "Ada")
    assert hands.template in [row["slug"] for row in carrel.told("templates")["templates"]]
    assert re.search(r"^name +email +role", carrel.said("people"))
    assert carrel.told("people")["people"][0]["role"] == "owner"
