"""``carrel pull`` as it is run at a terminal and by scripts."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from contextlib import chdir
from pathlib import Path as File
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner
from tests.client.cli_runner import finished
from tests.client.server_fixture import Hands, held
from tests.support.server_process import TOKEN, Live, command, environment

from carrel.cli import main

NOBODY = "http://127.0.0.1:1"
PROGRAM = "from carrel_client import requests as asking; asking.FIRST_PAUSE_SECONDS = 0.001\n"
PROGRAM += "from carrel.cli import main; main()"


def pull(*arguments: object, cwd: File | None = None, **settings: str) -> CompletedProcess[str]:
    with chdir(cwd or File.cwd()):
        return finished("pull", *arguments, **settings)


@pytest.fixture
def around(live: Live) -> dict[str, Any]:
    return {"url": live.url, "token": TOKEN}


def test_it_makes_a_directory_and_says_so(hands: Hands, desk: File, around: dict[str, Any]) -> None:
    hands.put("notes/a.md", "x")

    first, second = (pull(hands.agent, desk, **around) for _ in range(2))

    count = len(hands.served())
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == f"{desk}: {count} files, written\n"
    assert first.stderr == f"writing files: {count} of {count}\n"
    assert (second.stdout, second.stderr) == (f"{desk}: {count} files, unchanged\n", "")
    assert held(desk) == hands.served()


def test_it_answers_in_json(hands: Hands, desk: File, around: dict[str, Any]) -> None:
    hands.put("a.md", "x")

    told: dict[str, Any] = json.loads(pull(hands.agent, desk, "--json", **around).stdout)

    assert set(told) == {"ok", "directory", "changed", "stale", "fingerprint", "etag", "files"}
    assert (told["ok"], told["directory"], told["changed"]) == (True, str(desk), True)
    assert told["files"].keys() == hands.served().keys()


def test_options_go_before_settings(live: Live, hands: Hands, desk: File) -> None:
    hands.put("a.md", "x")
    done = pull(hands.agent, desk, "--url", live.url, "--token", TOKEN, url=NOBODY, token="wrong")
    assert done.returncode == 0
    assert held(desk) == hands.served()


def test_a_failure_is_said_in_a_line_and_leaves_what_is_there(
    hands: Hands, desk: File, around: dict[str, Any]
) -> None:
    hands.put("a.md", "x")
    other = desk.parent / "other"
    other.mkdir(parents=True)
    (other / "mine").write_text("mine")
    for done, text in (
        (pull(hands.agent, desk, **around | {"url": NOBODY}), "the server does not answer"),
        (pull(hands.agent, desk, **around | {"url": "carrel"}), "is not the URL of a server"),
        (pull(hands.agent, desk, **around | {"token": "wrong"}), "credential"),
        (pull(hands.agent, desk, **around | {"token": ""}), "a token is needed"),
        (pull("nobody", desk, **around), "there is no agent nobody"),
        (pull(hands.agent, other, **around), "is not empty"),
        (pull(hands.agent, ".", cwd=other, **around), "you are in that directory"),
        (pull(hands.agent, "..", cwd=other, **around), "you are in that directory"),
    ):
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(rf"Error: .*{text}.*\n", done.stderr), done.stderr
    assert not desk.exists()
    assert os.listdir(other) == ["mine"]
    failed = pull("nobody", desk, "--json", **around)
    assert (failed.returncode, failed.stderr) == (1, "")
    assert json.loads(failed.stdout) == {"ok": False, "problem": "there is no agent nobody"}


def test_what_is_there_is_good_enough_only_where_that_is_said(
    hands: Hands, desk: File, around: dict[str, Any]
) -> None:
    hands.put("a.md", "x")
    assert pull(hands.agent, desk, **around).returncode == 0
    # The same server by an address at which there is nobody any more.
    state = desk / ".carrel-workspace.json"
    state.write_text(state.read_text("utf-8").replace(around["url"], NOBODY), "utf-8")
    gone = around | {"url": NOBODY}

    assert pull(hands.agent, desk, **gone).returncode == 1
    done = pull(hands.agent, desk, "--stale-ok", **gone)
    told = json.loads(pull(hands.agent, desk, "--stale-ok", "--json", **gone).stdout)

    assert done.returncode == 0
    assert done.stdout.endswith("files, as they were\n")
    assert done.stderr.startswith("The server could not be asked: the server does not answer")
    assert (told["stale"], told["changed"]) == (True, False)
    assert told["problem"].startswith("the server does not answer")


def test_what_is_no_name_of_a_directory_is_refused_as_a_mistake_in_usage() -> None:
    done = CliRunner().invoke(main, ["pull", "ada", "de\0sk"])
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)
    assert "is no name of a file or directory" in done.output


@pytest.mark.parametrize("arguments", [[], ["ada"], ["ada", "x", "y"], ["ada", "x", "--frob"]])
def test_it_says_how_it_is_called(arguments: list[str], tmp_path: File) -> None:
    assert pull(*arguments, cwd=tmp_path).returncode == 2


def test_on_a_terminal_there_is_a_bar(hands: Hands, desk: File, around: dict[str, Any]) -> None:
    hands.put("a.md", "x")
    mine, theirs = pty.openpty()
    settings = environment(desk, **around) | {"TERM": "xterm", "COLUMNS": "100", "LINES": "24"}
    run = [*command(PROGRAM), "pull", hands.agent, str(desk)]
    process = subprocess.Popen(run, env=settings, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(mine, 65536):
            shown += chunk
    except OSError:
        pass  # Linux says so when the other side is closed
    os.close(mine)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == 0
    assert out.decode() == f"{desk}: {len(hands.served())} files, written\n"
    assert re.search(rb"writing files .*\xe2\x94\x81.*?(\d+)/\1\b", shown)
