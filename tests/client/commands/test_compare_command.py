"""``carrel compare``, ``run timeline`` and ``run heartbeat``; an error as the reason of a run."""

from __future__ import annotations

import re

import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor

from carrel_client import Client
from carrel_client.runtimes.agent_run import agent_run


def start_run(carrel: CarrelCommand, *arguments: str) -> str:
    return carrel.output("run", "start", *arguments).strip()


def test_two_runs_are_compared(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("SOUL.md", "Calm.\n")
    first = start_run(carrel, editor.agent)
    editor.put("SOUL.md", "Bold.\n")
    editor.put("new.md", "x\n")
    sides = (f"run:{first}", f"agent:{editor.agent}")

    output = carrel.output("compare", *sides)
    assert re.search(r"^SOUL.md +changed +v\d+ +v\d+$", output, re.M)
    assert re.search(r"^new.md +only-right +v1$", output, re.M)
    assert "GUARDRAILS.md" not in output
    assert re.search(r"^GUARDRAILS.md +same ", carrel.output("compare", *sides, "--all"), re.M)
    assert "-Calm.\n+Bold.\n" in carrel.output("compare", *sides, "--diff")
    assert carrel.output("diff", *sides) == carrel.output("compare", *sides, "--diff")
    assert carrel.json("diff", *sides) == carrel.json("compare", *sides, "--diff")
    assert carrel("diff", *sides, "--from", 1).exit_code == 2
    items = carrel.json("compare", *sides, "--prefix", "new")["items"]
    assert [(item["path"], item["status"]) for item in items] == [("new.md", "only-right")]
    refused = carrel("compare", "nothing", "defaults")
    assert refused.exit_code == 1
    assert "agent:NAME" in refused.stderr


def test_a_run_reports_and_shows_what_happened(editor: AgentEditor, carrel: CarrelCommand) -> None:
    run = start_run(carrel, editor.agent)
    assert carrel.output("run", "heartbeat", run).startswith(f"{run}: running until ")
    assert carrel.json("run", "heartbeat", run)["status"] == "running"
    reason = ("--status", "failed", "--reason", "no answer")
    assert carrel.output("run", "end", run, *reason) == f"{run}: failed\n"
    assert carrel("run", "heartbeat", run).exit_code == 1
    assert re.search(r"^reason +no answer$", carrel.output("run", "show", run), re.M)
    line = carrel.output("run", "timeline", run)
    assert re.search(r"run.started\s", line)
    assert re.search(r"run.failed\s", line)
    items = carrel.json("run", "timeline", run)["items"]
    assert [item["event"]["type"] for item in items] == ["run.started", "run.failed"]


def test_the_error_of_a_block_is_the_reason_of_its_run(editor: AgentEditor, client: Client) -> None:
    with pytest.raises(ZeroDivisionError), agent_run(client, editor.agent) as run:
        _ = 1 / 0
    failed = client.run(run.id)
    assert (failed.status, failed.reason) == ("failed", "ZeroDivisionError: division by zero")
