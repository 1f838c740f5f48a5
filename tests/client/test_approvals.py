"""Approvals by the client over HTTP and in process, and by commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.server_process import TOKEN, ServerProcess, serving
from tests.support.shell_commands import SANDBOX_CONFIG, replace_bash_tool, store_record
from tests.support.shell_session import WORKING, create_agent_with_approvals

import carrel
from carrel.cli import main
from carrel.core.store.record import RecordType
from carrel_client import AsyncClient, Client, Conflict, NotFound, ToolReply


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data: File = tmp_path_factory.mktemp("approvals")
    asyncio.run(create_agent_with_approvals(data))
    with serving(data, program=WORKING) as server:
        yield server


@pytest.fixture
def client(live: ServerProcess) -> Iterator[Client]:
    with Client(live.url, TOKEN) as client:
        for approval in client.approvals.list(status="requested"):
            client.approvals.answer(approval.id, False)
        yield client


@pytest.fixture
def command(live: ServerProcess, tmp_path: File) -> Any:
    def invoke(*words: str, typed: str = "") -> Result:
        variables = {"CARREL_URL": live.url, "CARREL_TOKEN": TOKEN, "COLUMNS": "200"}
        return CliRunner().invoke(main, list(words), input=typed, env=variables)

    return invoke


def request_call(client: Client, file: File, **more: Any) -> ToolReply:
    return client.agent("kate").tools.call("bash", {"command": f"do {file}"}, **more)


def request_approval(client: Client, file: File) -> str:
    approval = request_call(client, file).approval
    assert approval is not None
    return approval.id


def test_program_answers_an_approval_and_waits_for_its_result(
    client: Client, tmp_path: File
) -> None:
    reply = request_call(client, tmp_path / "x", call_id="first")
    assert reply.approval is not None
    assert reply.approval.id in reply.content
    id = reply.approval.id
    [approval] = client.approvals.list(status="requested", agent="kate")
    assert approval == reply.approval == client.approvals.get(id)
    assert client.approvals.answer(id, True, "go on").reason == "go on"
    done = client.approvals.get(id, wait=25)
    assert done.facts["result"] == {"content": "written", "isError": False}
    assert client.approvals.answer(id, True) == done
    assert request_call(client, tmp_path / "x", call_id="first") == ToolReply("written", False)
    with pytest.raises(Conflict):
        client.approvals.answer(id, False)
    with pytest.raises(NotFound):
        client.approvals.get("apr_nothing")
    with pytest.raises(Conflict):
        request_call(client, tmp_path / "y", call_id="first")


def test_approvals_are_listed_and_answered_by_commands(
    client: Client, command: Any, tmp_path: File
) -> None:
    nothing = command("approvals")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "no approvals\n")
    yes, no = request_approval(client, tmp_path / "a"), request_approval(client, tmp_path / "b")
    listed = command("approvals")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [yes, no]
    assert f"bash command=do {tmp_path / 'a'}"[:80] in listed.stdout
    listed_json = json.loads(command("approvals", "--json", "--agent", "kate").stdout)
    assert [row["id"] for row in listed_json] == [yes, no]
    approved = command("approve", yes, "--reason", "fine", "--wait", "25")
    assert (approved.exit_code, approved.stdout) == (0, f"{yes}  finished\n  written\n")
    denied = command("approvals", "--json", "deny", no, "--reason", "never")
    assert denied.exit_code == 0
    assert json.loads(denied.stdout)["approval"]["reason"] == "never"
    for words in (["deny", yes], ["approve", no], ["approve", "apr_nothing"]):
        refused = command("approvals", *words)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr.startswith("Error: ")
    lost = command("approvals", "approve", "apr_nothing", "--json")
    assert (lost.exit_code, json.loads(lost.stdout)["ok"]) == (1, False)
    assert command("approvals", "--status", "denied", "--watch").exit_code == 2
    assert no in command("approvals", "--status", "denied").stdout


def test_approvals_are_approved_denied_and_skipped_one_by_one(
    client: Client, command: Any, tmp_path: File
) -> None:
    ids = [request_approval(client, tmp_path / name) for name in "abc"]
    prompt = command("approvals", "--ask", typed="a\n\nd\nnot now\ns\n")
    assert prompt.exit_code == 0, prompt.output
    assert f"command: do {tmp_path / 'c'}" in prompt.stdout
    assert "sandbox sb_" in prompt.stdout
    statuses = [client.approvals.get(id, wait=2 * (n == 0)) for n, id in enumerate(ids)]
    assert [approval.status for approval in statuses] == ["finished", "denied", "requested"]
    assert statuses[1].reason == "not now"


def test_a_call_is_shown_whole_with_hidden_characters_before_it_is_approved(
    client: Client, command: Any
) -> None:
    hostile = "x \x1b[2J \u202e y\nz\ufe01" + " filler" * 1000 + " end"
    reply = client.agent("kate").tools.call("bash", {"command": hostile})
    assert reply.approval is not None
    id = reply.approval.id
    outputs = [
        command("approvals", "--ask", typed="s\n").stdout,
        command("approvals", "show", id).stdout,
        command("approve", id, "--wait", "0").stderr,
    ]
    for output in (*outputs, command("approvals", "--status", "finished").stdout):
        assert not {"\x1b", "\u202e", "\ufe01"} & set(output)
    for output in outputs:
        assert "x ⟨U+001B⟩[2J ⟨U+202E⟩ y\n" in output
        assert "        z⟨U+FE01⟩" + " filler" * 1000 + " end\n" in output


def test_watch_prints_new_approvals(live: ServerProcess, client: Client, tmp_path: File) -> None:
    from carrel.cli.commands.approvals import _wait_for_new  # noqa: PLC0415 - private

    old = request_approval(client, tmp_path / "old")
    server = {"url": live.url, "token": TOKEN}

    async def watch() -> list[str]:
        first = await _wait_for_new("requested", None, server, set(), True)
        seen_ids = {approval["id"] for approval in first}
        coming = asyncio.create_task(_wait_for_new("requested", None, server, seen_ids, True))
        async with AsyncClient(live.url, TOKEN) as awaiting:
            reply = await awaiting.agent("kate").tools.call(
                "bash", {"command": f"do {tmp_path}/new"}
            )
        async with asyncio.timeout(30):
            new = await coming
        assert reply.approval is not None
        assert [approval["id"] for approval in new] == [reply.approval.id]
        return sorted(seen_ids)

    assert asyncio.run(watch()) == [old]


@pytest.mark.anyio
async def test_approved_call_runs_in_process(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = replace_bash_tool(monkeypatch)
    async with carrel.open(tmp_path / "data") as client:
        tenant = (await client.tenants.me()).id
        config = {"permissionMode": "ask"}
        await store_record(
            client._ports, tenant, RecordType.SANDBOX, SANDBOX_CONFIG["sandbox"], config
        )
        await client.agents.create("kate", config=SANDBOX_CONFIG)
        tools = client.agent("kate").tools
        assert "bash" in [approval["name"] for approval in await tools.describe()]
        reply = await tools.call("bash", {"command": "ls"}, call_id="c1")
        assert reply.approval is not None
        [approval] = await client.approvals.list(status="requested", agent="kate")
        assert (approval.id, approval.input, approval.result) == (
            reply.approval.id,
            {"command": "ls"},
            None,
        )
        done = await client.approvals.answer(approval.id, True)
        assert done.result is not None
        assert (done.status, done.result.content) == ("finished", "ran ls")
        assert await client.approvals.answer(approval.id, True) == done
        assert await client.approvals.get(approval.id, wait=1) == done
        assert (await tools.call("bash", {"command": "ls"}, call_id="c1")).content == "ran ls"
        with pytest.raises(carrel.Conflict):
            await client.approvals.answer(approval.id, False)
        with pytest.raises(carrel.ValidationError):
            await client.approvals.list(status="maybe")
    assert shell.ran == ["ls"]
