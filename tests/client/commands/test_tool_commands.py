"""`carrel tools`, and the structured results of tools in other commands."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor, json_of

from carrel_client import Client


@pytest.fixture
def agent(editor: AgentEditor) -> str:
    """An agent with a workspace for all calls, and one whose calls need approval."""
    attached = []
    for name, mode in (("notes", "bypass"), ("asks", "ask")):
        config = {"permissionMode": mode, "outputLimitBytes": 2000}
        box = json_of(
            editor.http.post(
                "/accounts/me/sandboxes",
                json={"name": f"{name} {editor.agent}", "config": config},
            )
        )
        body = {"name": f"{name} {editor.agent}"}
        files = json_of(editor.http.post("/accounts/me/workspaces", json=body))
        workspace, sandbox = files["workspaceId"], box["sandboxId"]
        attached.append({"name": name, "workspaceId": workspace, "sandbox": sandbox})
    changes = {"config": {"workspaces": attached}}
    json_of(editor.http.patch(f"/v1/agents/{editor.agent}", json=changes))
    return editor.agent


def test_the_tools_of_an_agent_are_listed(agent: str, carrel: CarrelCommand) -> None:
    output = carrel.output("tools", agent)
    assert re.search(r"^edit +file_path, old_string, new_string +Replaces ", output, re.M)
    tools = {tool["name"]: tool for tool in carrel.json("tools", agent)}
    assert "exitCode" in json.dumps(tools["bash"]["outputSchema"])


def test_a_command_shows_its_exit_code_time_and_changed_files(
    agent: str, carrel: CarrelCommand
) -> None:
    command = "command=echo out; echo x > new; exit 3"
    done = carrel("tools", agent, "bash", command, "timeout:=20")
    assert (done.exit_code, done.stdout) == (1, "out\n[exit code 3]\n")
    assert re.fullmatch(r"exit code 3, \d+\.\d\d s\ncreated new version 1\n", done.stderr)
    reply = carrel.json("tools", agent, "bash", command, code=1)
    assert (reply["isError"], reply["structured"]["exitCode"]) == (False, 3)
    [changed] = reply["structured"]["changed"]
    assert changed == {"path": "new", "version": 2, "change": "modified"}
    late = carrel("tools", agent, "bash", "command=exec sleep 30", "timeout:=1")
    assert (late.exit_code, late.stderr[:10]) == (1, "timed out,")


def test_output_that_was_cut_is_named(agent: str, carrel: CarrelCommand) -> None:
    long = carrel("tools", agent, "bash", "command=seq 2000")
    assert long.exit_code == 0
    assert re.fullmatch(
        r"exit code 0, \d+\.\d\d s, cut\noutput in \.carrel/output/call_\w+\.stdout\.txt\n",
        long.stderr,
    )


def test_arguments_come_from_words_and_from_a_file(agent: str, carrel: CarrelCommand) -> None:
    body = json.dumps({"file_path": "a.md", "content": "from the file"})
    written = carrel("tools", agent, "write", "--input", "-", "content=a=b\n", input=body)
    assert written.stdout == "Wrote a.md (4 bytes)\n"
    assert written.stderr == "a.md version 1\n"
    read = carrel("tools", agent, "read", "file_path=a.md", "limit:=1")
    assert (read.exit_code, read.stdout) == (0, "     1\ta=b\n")
    for words in (["read", "file_path"], ["read", "limit:=x"], ["read", "=x"]):
        assert carrel("tools", agent, *words).exit_code == 2
    assert carrel("tools", agent, "read", "--input", "-", input="[]").exit_code == 2
    assert carrel("tools", agent, "read", "--input", "-", input="{").exit_code == 2


def test_errors_have_the_exit_code_1(agent: str, carrel: CarrelCommand) -> None:
    missing = carrel("tools", agent, "read", "file_path=none.md")
    assert (missing.exit_code, missing.stdout) == (1, "Error: file not found: none.md\n")
    assert carrel("tools", agent, "fly").exit_code == 1
    shared = carrel("tools", agent, "recall", "query=x", "--scope", "shared")
    assert (shared.exit_code, shared.stdout) == (
        1,
        "recall is not available in a shared session\n",
    )


def test_a_call_that_waits_for_approval_says_so_and_shows_its_result_later(
    agent: str, carrel: CarrelCommand
) -> None:
    words = ("tools", agent, "bash", "workspace=asks", "command=touch new", "--call-id", "c1")
    waiting = carrel(*words, "--wait", "0")
    assert (waiting.exit_code, waiting.stdout) == (1, "")
    [id] = re.findall(r"apr_\w+", waiting.stderr)
    assert carrel.json(*words, "--wait", "0", code=1)["approval"]["id"] == id
    approved = carrel.output("approve", id, "--wait", "25")
    facts = r"  exit code 0, \d+\.\d\d s\n  created new version 1\n"
    assert re.fullmatch(rf"{id}  finished\n{facts}", approved)
    assert re.search(f"{facts}\\Z", carrel.output("approvals", "show", id))
    assert carrel.json(*words)["structured"]["exitCode"] == 0


@pytest.mark.parametrize("key", ["structured", "structuredContent"])
def test_a_session_shows_the_structured_results_of_its_tool_entries(
    agent: str, carrel: CarrelCommand, key: str, client: Client
) -> None:
    result: Any = {"exitCode": 2, "durationMs": 1500, "timedOut": False, "truncated": True}
    changed = [{"path": "a\x1b[2J", "version": 4, "change": "modified"}, 5]
    session = client.agent(agent).sessions.start()
    session.append("tool", "text", item={"content": "text", key: {**result, "changed": changed}})
    output = carrel.output("sessions", agent, session.id)
    facts = ["text", "exit code 2, 1.50 s, cut", "modified a⟨U+001B⟩[2J version 4"]
    assert [line.strip() for line in output.splitlines()[1:]] == facts
