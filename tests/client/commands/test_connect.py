"""``carrel connect``: snippets of an agent, and the wait for its first request."""

from __future__ import annotations

import json
import os
import subprocess

import httpx
import pytest
from tests.client.cli_runner import run_command as carrel
from tests.support.server_process import CARREL, TOKEN, ServerProcess, command


@pytest.fixture
def ada(http: httpx.Client) -> str:
    http.post("/v1/agents", json={"slug": "ada", "name": "Ada"})
    return "ada"


def test_connect_lists_names_and_prints_one_snippet(live: ServerProcess, ada: str) -> None:
    connection = {"url": live.url, "token": TOKEN}
    listed = carrel("connect", ada, **connection).stdout
    assert "langgraph" in listed
    assert "~/.cursor/mcp.json" in listed
    cursor = carrel("connect", ada, "cursor", **connection)
    assert json.loads(cursor.stdout)["mcpServers"]["ada"]["url"] == f"{live.url}/mcp/agents/ada"
    assert cursor.stderr == "# ~/.cursor/mcp.json\n"
    as_json = carrel("connect", ada, "--json", **connection)
    assert json.loads(as_json.stdout)["keyPlaceholder"] == "carrel_YOUR_KEY"
    unknown = carrel("connect", ada, "nothing", **connection)
    assert unknown.returncode == 2
    assert "there are: curl, python" in unknown.stderr


def test_connect_creates_a_key_and_waits_for_its_first_request(
    live: ServerProcess, ada: str
) -> None:
    variables = os.environ | {"CARREL_URL": live.url, "CARREL_TOKEN": TOKEN}
    arguments = [*command(CARREL), "connect", ada, "curl", "--create-key", "--wait"]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, env=variables, stdout=pipe, stderr=pipe, text=True) as waiting:
        assert waiting.stdout and waiting.stderr
        assert "waiting" in waiting.stderr.readline()
        snippet = "".join(waiting.stdout.readline() for _ in range(6))
        assert "carrel_YOUR_KEY" not in snippet
        subprocess.run(["bash", "-c", snippet], check=True, capture_output=True, timeout=60)
        assert waiting.wait(60) == 0
        assert "connected" in waiting.stderr.read()


def test_waiting_needs_a_new_key(live: ServerProcess, ada: str) -> None:
    refused = carrel("connect", ada, "curl", "--wait", url=live.url, token=TOKEN)
    assert refused.returncode == 2
