"""Snippets that connect runtimes and MCP clients: each works as it is printed."""

from __future__ import annotations

import ast
import importlib
import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.server_process import CARREL, TOKEN, ServerProcess, command, serving

RUNTIMES = (
    "langgraph",
    "deepagents",
    "pydantic-ai",
    "openai-agents",
    "strands",
    "google-adk",
    "agent-framework",
    "memory-stores",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("connect")) as live:
        yield live


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=server.url, headers=head, timeout=30) as client:
        client.post("/v1/agents", json={"slug": "ada-2", "name": "Ada"}).raise_for_status()
        yield client


@pytest.fixture
def snippets(http: httpx.Client) -> dict[str, dict[str, str]]:
    """Snippets by id, with a fresh key of the agent."""
    body = {"name": "connect", "kind": "agent", "agentId": "ada-2"}
    key = http.post("/v1/keys", json=body).raise_for_status().json()["key"]
    connection = http.get("/v1/agents/ada-2/connection").raise_for_status().json()
    return {
        row["id"]: row | {"text": row["text"].replace(connection["keyPlaceholder"], key)}
        for row in connection["snippets"]
    }


def test_every_documented_runtime_has_a_snippet(snippets: dict[str, Any]) -> None:
    assert {"curl", "python", *RUNTIMES} <= set(snippets)
    guides = File(__file__).parents[4] / "docs/guide/build"
    assert all((guides / f"{name}.md").exists() for name in RUNTIMES)


def test_the_curl_snippet_starts_a_run(snippets: dict[str, Any]) -> None:
    answer = _run(["bash", "-c", snippets["curl"]["text"]])
    assert json.loads(answer)["prompt"]["text"]


def test_the_python_snippet_prints_prompt_and_tools(snippets: dict[str, Any]) -> None:
    answer = _run([sys.executable, "-c", snippets["python"]["text"]])
    assert "who_am_i" in answer


@pytest.mark.parametrize(
    "name", ["claude-code", "cursor", "vs-code", "codex", "gemini-cli", "windsurf"]
)
def test_the_configuration_of_an_mcp_client_reaches_the_agents_tools(
    snippets: dict[str, Any], name: str
) -> None:
    url, headers = _http_server(snippets[name])
    answer = _call_tool(url, headers)
    assert "Ada" in json.dumps(answer)


def test_the_configuration_of_a_stdio_client_reaches_the_agents_tools(
    snippets: dict[str, Any],
) -> None:
    [server] = json.loads(snippets["claude-desktop"]["text"])["mcpServers"].values()
    assert server["command"] == "carrel"
    messages = [
        _message(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        ),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _message("tools/call", {"name": "who_am_i", "arguments": {}}, id=2),
    ]
    text = "".join(json.dumps(message) + "\n" for message in messages)
    arguments = [*command(CARREL), *server["args"]]
    answer = _run(arguments, text, os.environ | server["env"])
    assert "Ada" in answer.splitlines()[-1]


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_snippet_of_a_runtime_uses_names_that_the_client_has(
    snippets: dict[str, Any], name: str
) -> None:
    tree = ast.parse(snippets[name]["text"])
    imported = [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("carrel_client")
        for alias in node.names
    ]
    assert len(imported) >= 2
    for module, attribute in imported:
        assert attribute in importlib.import_module(str(module)).__all__
    extras = File(__file__).parents[4] / "client/pyproject.toml"
    declared = tomllib.loads(extras.read_text("utf-8"))["project"]["optional-dependencies"]
    requested = snippets[name]["install"].partition("[")[2].partition("]")[0].split(",")
    assert requested and set(requested) <= set(declared)


def test_a_key_tells_when_a_snippet_was_used_first(http: httpx.Client) -> None:
    body = {"name": "connect", "kind": "agent", "agentId": "ada-2"}
    key = http.post("/v1/keys", json=body).json()
    assert http.get(f"/v1/keys/{key['id']}").json()["lastUsedAt"] is None
    head = {"Authorization": f"Bearer {key['key']}"}
    http.post("/v1/runs", json={"agentId": "ada-2"}, headers=head).raise_for_status()
    assert http.get(f"/v1/keys/{key['id']}").json()["lastUsedAt"] is not None


def test_snippets_of_an_unknown_agent_are_404(http: httpx.Client) -> None:
    assert http.get("/v1/agents/nobody/connection").status_code == 404


def _run(arguments: list[str], text: str = "", variables: Any = None) -> str:
    completed = subprocess.run(
        arguments,
        input=text,
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def _http_server(snippet: dict[str, str]) -> tuple[str, dict[str, str]]:
    """URL and headers that a configuration has."""
    text = snippet["text"]
    if snippet["language"] == "shell":
        words = shlex.split(text.replace("\\\n", " "))
        assert words[:5] == ["claude", "mcp", "add", "--transport", "http"]
        name, _, value = words[words.index("--header") + 1].partition(": ")
        return words[6], {name: value}
    parsed = tomllib.loads(text) if snippet["language"] == "toml" else json.loads(text)
    [servers] = parsed.values()
    [server] = servers.values()
    [url] = [server[key] for key in ("url", "httpUrl", "serverUrl") if key in server]
    return url, server.get("headers") or server["http_headers"]


def _message(method: str, params: Any, id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _call_tool(url: str, headers: dict[str, str]) -> Any:
    body = _message("tools/call", {"name": "who_am_i", "arguments": {}})
    accept = {"Accept": "application/json, text/event-stream"}
    return (
        httpx.post(url, json=body, headers=headers | accept, timeout=30).raise_for_status().json()
    )
