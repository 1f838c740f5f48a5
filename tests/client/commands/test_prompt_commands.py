"""``carrel prompt`` and ``carrel lint`` at a terminal and in scripts."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path as File
from typing import Any

import pytest
from tests.client.cli_runner import run_command as carrel
from tests.client.server_fixture import AgentEditor, json_of
from tests.support.server_process import TOKEN, ServerProcess, command, environment

PROGRAM = "from carrel_client import requests as asking; asking.FIRST_PAUSE_SECONDS = 0.001\n"
PROGRAM += "from carrel.cli import main; main()"
UNREACHABLE_URL = "http://127.0.0.1:1"


@pytest.fixture
def connection(live: ServerProcess) -> dict[str, Any]:
    return {"url": live.url, "token": TOKEN}


def paired(editor: AgentEditor) -> None:
    """Give the agent a human with a complete profile."""
    person = {"name": "Bo", "email": f"{editor.agent}@example.org", "role": "member"}
    about = {"title": "CEO", "timezone": "UTC", "pronouns": "they"}
    id = json_of(editor.http.post("/v1/people", json=person | about))["id"]
    json_of(editor.http.patch(f"/v1/agents/{editor.agent}", json={"humanPairId": id}))


def test_prompt_prints_a_table_of_blocks(editor: AgentEditor, connection: dict[str, Any]) -> None:
    editor.put("SOUL.md", "x" * 13_000)
    done = carrel("prompt", editor.agent, **connection)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^SOUL +agent-override +2 +12,007 +[\d,]+ +cut: 13000 characters", done.stdout, re.M
    )
    assert re.search(r"^MEMORY +0 +0 +left out: no such file *$", done.stdout, re.M)
    assert done.stdout.endswith("tokens of o200k_base\n")
    assert "\x1b" not in done.stdout


def test_prompt_prints_text_or_json_on_request(
    editor: AgentEditor, connection: dict[str, Any]
) -> None:
    editor.put("MEMORY.md", "a canary")
    text = carrel("prompt", editor.agent, "--text", **connection).stdout
    report = json.loads(
        carrel("prompt", editor.agent, "--json", "--scope", "shared", **connection).stdout
    )
    assert text.startswith("# PLATFORM\n")
    assert text.endswith("# MEMORY\na canary\n")
    assert set(report) == {"text", "blocks", "chars", "tokens", "tokenizer", "etag"}
    assert "a canary" not in json.dumps(report)


def test_errors_of_prompt_are_one_line(editor: AgentEditor, connection: dict[str, Any]) -> None:
    none = carrel("prompt", "unknown", **connection)
    assert (none.returncode, none.stderr) == (1, "Error: no such agent: unknown\n")
    assert carrel("prompt", editor.agent, "--scope", "group", **connection).returncode == 2
    assert carrel("prompt", editor.agent, url=UNREACHABLE_URL, token=TOKEN).returncode == 1
    assert "no API token" in carrel("prompt", editor.agent).stderr


def test_terminal_gets_a_coloured_bar(editor: AgentEditor, connection: dict[str, Any]) -> None:
    mine, theirs = pty.openpty()
    settings = environment(File("nowhere"), **connection)
    settings |= {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24"}
    run = [*command(PROGRAM), "prompt", editor.agent]
    process = subprocess.Popen(run, env=settings, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(mine, 65536):
            output += chunk
    except OSError:
        pass  # Linux raises OSError when the other side is closed
    os.close(mine)
    _, problem = process.communicate(timeout=60)
    assert process.returncode == 0, problem
    first = output.decode().splitlines()[0]
    assert re.match("\x1b\\[31m█+\x1b\\[0m\x1b\\[33m█+", first)
    assert len(re.findall("█", first)) <= 100
    assert "\x1b[31m■ \x1b[0m" in output.decode()


def test_lint_passes_a_good_prompt_and_fails_a_bad_one(
    editor: AgentEditor, connection: dict[str, Any]
) -> None:
    lone = carrel("lint", editor.agent, **connection)
    assert (lone.returncode, lone.stdout) == (0, "1 agent: no problems\n")
    editor.put("SOUL.md", "for {{HUMAN_NAME}}")
    lone = carrel("lint", editor.agent, **connection)
    assert lone.returncode == 1
    assert "SOUL.md: placeholder: {{HUMAN_NAME}} has no value" in lone.stdout
    paired(editor)
    good = carrel("lint", editor.agent, **connection)
    assert (good.returncode, good.stdout) == (0, "1 agent: no problems\n")
    editor.put("SOUL.md", "{{UNKNOWN}}\n" + "x" * 13_000)
    json_of(
        editor.http.patch(f"/v1/agents/{editor.agent}", json={"config": {"extraDocs": ["no.md"]}})
    )
    bad = carrel("lint", editor.agent, "--json", **connection)
    report = json.loads(bad.stdout)
    assert (bad.returncode, report["ok"]) == (1, False)
    assert {(flaw["fault"], flaw["path"]) for flaw in report["agents"][editor.agent]} == {
        ("truncated", "SOUL.md"),
        ("placeholder", "SOUL.md"),
        ("extra-doc", "no.md"),
    }
    every = json.loads(carrel("lint", "--all", "--json", **connection).stdout)
    assert every["agents"][editor.agent] == report["agents"][editor.agent]


def test_lint_that_cannot_run_has_its_own_exit_code(
    editor: AgentEditor, connection: dict[str, Any]
) -> None:
    assert carrel("lint", "unknown", **connection).returncode == 2
    assert carrel("lint", editor.agent, url=UNREACHABLE_URL, token=TOKEN).returncode == 2
    assert json.loads(carrel("lint", "unknown", "--json", **connection).stdout)["ok"] is False
    assert carrel("lint", **connection).returncode == 2
    assert carrel("lint", editor.agent, "--all", **connection).returncode == 2
