"""``carrel prompt`` and ``carrel lint`` as they are run at a terminal and by scripts."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path as File
from typing import Any

import pytest
from tests.client.cli_runner import finished as carrel
from tests.client.server_fixture import Hands, made
from tests.support.server_process import TOKEN, Live, command, environment

PROGRAM = "from carrel_client import requests as asking; asking.FIRST_PAUSE_SECONDS = 0.001\n"
PROGRAM += "from carrel.cli import main; main()"
NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def around(live: Live) -> dict[str, Any]:
    return {"url": live.url, "token": TOKEN}


def paired(hands: Hands) -> None:
    """Let the agent have a human of whom all is known."""
    person = {"name": "Bo", "email": f"{hands.agent}@example.org", "role": "member"}
    about = {"title": "CEO", "timezone": "UTC", "pronouns": "they"}
    id = made(hands.http.post("/v1/people", json=person | about))["id"]
    made(hands.http.patch(f"/v1/agents/{hands.agent}", json={"humanPairId": id}))


def test_a_table_says_what_became_of_each_file(hands: Hands, around: dict[str, Any]) -> None:
    hands.put("SOUL.md", "x" * 13_000)
    done = carrel("prompt", hands.agent, **around)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^SOUL +agent-override +1 +12,007 +[\d,]+ +cut: 13000 characters", done.stdout, re.M
    )
    assert re.search(r"^MEMORY +0 +0 +left out: there is no such file *$", done.stdout, re.M)
    assert done.stdout.endswith("tokens of o200k_base\n")
    assert "\x1b" not in done.stdout


def test_the_prompt_itself_and_json_on_request(hands: Hands, around: dict[str, Any]) -> None:
    hands.put("MEMORY.md", "a canary")
    text = carrel("prompt", hands.agent, "--text", **around).stdout
    told = json.loads(carrel("prompt", hands.agent, "--json", "--scope", "shared", **around).stdout)
    assert text.startswith("# PLATFORM\n")
    assert text.endswith("# MEMORY\na canary\n")
    assert set(told) == {"text", "blocks", "chars", "tokens", "tokenizer", "etag"}
    assert "a canary" not in json.dumps(told)


def test_what_goes_wrong_is_said_in_a_line(hands: Hands, around: dict[str, Any]) -> None:
    none = carrel("prompt", "nobody", **around)
    assert (none.returncode, none.stderr) == (1, "Error: there is no agent nobody\n")
    assert carrel("prompt", hands.agent, "--scope", "group", **around).returncode == 2
    assert carrel("prompt", hands.agent, url=NOBODY, token=TOKEN).returncode == 1
    assert "a token is needed" in carrel("prompt", hands.agent).stderr


def test_on_a_terminal_there_is_a_coloured_bar(hands: Hands, around: dict[str, Any]) -> None:
    mine, theirs = pty.openpty()
    settings = environment(File("nowhere"), **around)
    settings |= {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24"}
    run = [*command(PROGRAM), "prompt", hands.agent]
    process = subprocess.Popen(run, env=settings, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(mine, 65536):
            shown += chunk
    except OSError:
        pass  # Linux says so when the other side is closed
    os.close(mine)
    _, problem = process.communicate(timeout=60)
    assert process.returncode == 0, problem
    first = shown.decode().splitlines()[0]
    assert re.match("\x1b\\[31m█+\x1b\\[0m\x1b\\[33m█+", first)
    assert len(re.findall("█", first)) <= 100
    assert "\x1b[31m■ \x1b[0m" in shown.decode()


def test_a_good_prompt_passes_and_a_bad_one_does_not(hands: Hands, around: dict[str, Any]) -> None:
    lone = carrel("lint", hands.agent, **around)
    assert (lone.returncode, lone.stdout) == (0, "1 agent: nothing is wrong\n")
    hands.put("SOUL.md", "for {{HUMAN_NAME}}")
    lone = carrel("lint", hands.agent, **around)
    assert lone.returncode == 1
    assert "SOUL.md: placeholder: {{HUMAN_NAME}} stands for nothing" in lone.stdout
    paired(hands)
    good = carrel("lint", hands.agent, **around)
    assert (good.returncode, good.stdout) == (0, "1 agent: nothing is wrong\n")
    hands.put("SOUL.md", "{{NOBODY}}\n" + "x" * 13_000)
    made(hands.http.patch(f"/v1/agents/{hands.agent}", json={"config": {"extraDocs": ["no.md"]}}))
    bad = carrel("lint", hands.agent, "--json", **around)
    told = json.loads(bad.stdout)
    assert (bad.returncode, told["ok"]) == (1, False)
    assert {(flaw["fault"], flaw["path"]) for flaw in told["agents"][hands.agent]} == {
        ("truncated", "SOUL.md"),
        ("placeholder", "SOUL.md"),
        ("extra-doc", "no.md"),
    }
    every = json.loads(carrel("lint", "--all", "--json", **around).stdout)
    assert every["agents"][hands.agent] == told["agents"][hands.agent]


def test_what_cannot_be_found_out_is_told_apart(hands: Hands, around: dict[str, Any]) -> None:
    assert carrel("lint", "nobody", **around).returncode == 2
    assert carrel("lint", hands.agent, url=NOBODY, token=TOKEN).returncode == 2
    assert json.loads(carrel("lint", "nobody", "--json", **around).stdout)["ok"] is False
    assert carrel("lint", **around).returncode == 2
    assert carrel("lint", hands.agent, "--all", **around).returncode == 2
