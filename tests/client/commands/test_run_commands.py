"""``carrel run`` and ``carrel replay``; runs in sessions and provenance over every driver."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor

from carrel_client import Client, Conflict, File, NewEntry, NotFound


def start_run(carrel: CarrelCommand, *arguments: str) -> str:
    output = carrel.output("run", "start", *arguments)
    assert re.fullmatch(r"\S+\n", output)
    return output.strip()


def test_run_reads_its_snapshot_and_prints_changes(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    editor.put("SOUL.md", "I am {{AGENT_NAME}}.\n")
    run = start_run(carrel, editor.agent, "--workflow", "nightly")
    editor.put("SOUL.md", "Bold.\n")
    editor.put("new.md", "x")
    assert carrel.output("run", "cat", run, "SOUL.md") == "I am Ada.\n"
    assert "# SOUL\nI am Ada." in carrel.output("run", "prompt", run)
    assert re.search(
        r"^SOUL.md +2 +agent-override +\w{12}$", carrel.output("run", "files", run), re.M
    )
    output = carrel.output("run", "diff", run)
    assert re.search(r"^SOUL.md +changed +2 +3$", output, re.M)
    assert re.search(r"^new.md +added +1$", output, re.M)
    assert "-I am Ada.\n+Bold.\n" in carrel.output("run", "diff", run, "SOUL.md")
    report = carrel.json("run", "diff", run)
    assert {"path": "new.md", "change": "added", "beforeVersion": None, "afterVersion": 1} in (
        report["changes"]
    )
    assert carrel.json("run", "diff", run, "SOUL.md")["diff"].endswith("+Bold.\n")
    assert carrel.json("run", "cat", run, "SOUL.md")["content"] == "I am Ada.\n"
    assert carrel("run", "cat", run, "new.md").exit_code == 1


def test_runs_are_listed_printed_and_ended(editor: AgentEditor, carrel: CarrelCommand) -> None:
    first, last = (
        start_run(carrel, editor.agent),
        start_run(carrel, editor.agent, "--scope", "shared"),
    )
    assert f"{first}: failed\n" == carrel.output("run", "end", first, "--status", "failed")
    assert carrel("run", "end", first).exit_code == 1
    rows = carrel.json("run", "ls", "--agent", editor.agent)["runs"]
    assert [(row["runId"], row["status"]) for row in rows] == [(last, "running"), (first, "failed")]
    newest = carrel.output("run", "ls", "--agent", editor.agent, "--limit", "1")
    assert re.search(rf"^{last} +running +\S+Z +shared ", newest, re.M)
    assert first not in newest
    output = carrel.output("run", "show", first)
    assert re.search(r"^status +failed$", output, re.M)
    assert re.search(r"^files +\d+$", output, re.M)
    carrel.output("run", "end", last, "--release")
    assert re.search(r"^files +released$", carrel.output("run", "show", last), re.M)
    assert carrel("run", "files", last).exit_code == 1


def test_runs_are_listed_by_status_and_time(editor: AgentEditor, carrel: CarrelCommand) -> None:
    failed, running = start_run(carrel, editor.agent), start_run(carrel, editor.agent)
    carrel.output("run", "end", failed, "--status", "failed")

    def listed(*filters: str) -> list[str]:
        rows = carrel.json("run", "ls", "--agent", editor.agent, *filters)["runs"]
        return [row["runId"] for row in rows]

    assert listed("--status", "failed") == [failed]
    assert listed("--from", "2001-01-01") == [running, failed]
    assert listed("--to", "2001-01-01T00:00:01") == []
    assert carrel("run", "ls", "--status", "lost").exit_code == 2
    assert carrel("run", "ls", "--from", "yesterday").exit_code == 2


def test_replay_reads_the_same_bytes(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("SOUL.md", "then")
    run = start_run(carrel, editor.agent)
    editor.put("SOUL.md", "now")
    editor.rename("Bo")
    done = carrel("replay", run)
    assert done.exit_code == 0
    twin = done.stdout.strip()
    assert re.fullmatch(rf"{twin} sees the same \d+ files as {run}\n", done.stderr)
    assert carrel.output("run", "cat", twin, "SOUL.md") == "then"
    assert carrel.output("run", "prompt", twin) == carrel.output("run", "prompt", run)
    assert re.search(rf"^replay of +{run}$", carrel.output("run", "show", twin), re.M)
    report = carrel.json("replay", run)
    assert (report["ok"], report["run"]["status"]) == (True, "running")
    carrel.output("run", "end", run, "--release")
    assert carrel("replay", run).exit_code == 1


def test_child_run_may_share_the_snapshot(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("SOUL.md", "then")
    parent = start_run(carrel, editor.agent)
    editor.put("SOUL.md", "now")
    child = start_run(carrel, "--parent", parent)
    twin = start_run(carrel, "--parent", parent, "--share-snapshot")
    assert carrel.output("run", "cat", child, "SOUL.md") == "now"
    assert carrel.output("run", "cat", twin, "SOUL.md") == "then"
    assert carrel("run", "start").exit_code == 2
    assert carrel("run", "start", editor.agent, "--share-snapshot").exit_code == 2
    assert carrel("run", "show", "no-such-run").exit_code == 1
    assert carrel.json("run", "start", "--workflow", "nightly")["status"] == "running"


def test_a_run_in_a_session_shows_its_provenance(
    editor: AgentEditor, carrel: CarrelCommand, client: Client
) -> None:
    editor.put("SOUL.md", "I am {{AGENT_NAME}}.\n")
    run = start_run(carrel, editor.agent, "--session", "chat/1")
    entries = [NewEntry(role="assistant", content="Hello\x1b[31m you.")]
    client.run(run).finish(entries=entries)
    output = carrel.output("run", "provenance", run)
    assert "\x1b" not in output
    assert "chat/1 #1 assistant: Hello" in output
    assert re.search(r"^SOUL.md +\d +agent-override +yes +\S", output, re.M)
    assert re.search(r"^GUARDRAILS.md .* recorded by ", output, re.M)
    same = carrel.output("sessions", editor.agent, "chat/1", "--provenance", "1")
    assert same == output
    assert carrel.json("run", "provenance", run)["run"]["sessionId"] == "chat/1"
    rows = carrel.json("run", "ls", "--agent", editor.agent, "--session", "chat/1")["runs"]
    assert [row["runId"] for row in rows] == [run]
    assert re.search(r"^session +chat/1$", carrel.output("run", "show", run), re.M)
    assert carrel("run", "ls", "--session", "x").exit_code == 2
    assert carrel("sessions", editor.agent, "--provenance", "1").exit_code == 2


def test_a_run_starts_with_its_parts_and_ends_with_entries(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    parts = ("--include", "prompt", "--include", "tools", "--dialect", "anthropic")
    arguments = ("run", "start", editor.agent, "--session", "chat/2", *parts)
    started = carrel.json(*arguments)
    assert started["prompt"]["text"]
    assert "input_schema" in started["tools"][0]
    assert "files" not in started
    again = carrel.json(*arguments, "--if-none-match", started["etag"])
    assert again["notModified"]
    assert "prompt" not in again
    assert carrel(*arguments).exit_code == 2
    assert carrel("run", "start", editor.agent, "--dialect", "mcp", "--json").exit_code == 2

    entries = [{"role": "user", "content": "Hi."}, {"role": "tool", "item": {"n": [1]}}]
    end = ("run", "end", started["runId"], "--entries", "-")
    assert carrel(*end, input="{").exit_code == 2
    assert carrel(*end, input='[{"text": "x"}]').exit_code == 2
    assert carrel.output(*end, input=json.dumps(entries)).endswith(": completed\n")
    stored = carrel.json("sessions", editor.agent, "chat/2")["entries"]
    assert [(entry["role"], entry["runId"]) for entry in stored] == [
        ("user", started["runId"]),
        ("tool", started["runId"]),
    ]
    assert stored[1]["item"] == {"n": [1]}


ODD_IDS = ("user/42", "..", "a.jsonl", "Ada ☕ 50%", "x" * 255)


async def create_kate(api: Any) -> Any:
    await api.agents.create("kate", "Kate")
    agent = api.agent("kate")
    await agent.put("SOUL.md", "I am {{AGENT_NAME}}.\n", reason="first words")
    return agent


@pytest.mark.parametrize("id", ODD_IDS)
@pytest.mark.anyio
async def test_any_text_is_a_session_id(api: Any, id: str) -> None:
    agent = await create_kate(api)
    session = await agent.sessions.start(id)
    await session.append("user", "hello")
    assert session.id == id
    chain = await agent.sessions.get(id)
    assert (chain.entry_count, len(await chain.lines())) == (1, 2)
    await chain.delete()
    with pytest.raises(NotFound):
        await agent.sessions.get(id)


@pytest.mark.anyio
async def test_entries_are_appended_together_and_taken_back(api: Any) -> None:
    agent = await create_kate(api)
    session = await agent.sessions.start("chat")
    call = {"type": "tool_use", "name": "search", "input": {"q": "tea"}}
    entries = [
        NewEntry(role="user", content="Is there tea?"),
        NewEntry(role="assistant", item=call, message_id="m-1"),
    ]
    first, second = await session.append_all(entries)
    assert (first.number, second.number, second.item) == (1, 2, call)
    assert second.content == 'search\n{"q":"tea"}'
    assert session.entry_count == 2
    popped = await session.pop()
    assert (popped.number, popped.item) == (2, call)
    assert (await session.append("user", "And?")).number == 3
    assert [entry.number for entry in await session.recent(2)] == [1, 3]
    cleared = await session.clear()
    assert cleared.entry_count == 0
    assert await session.pop() is None
    assert await session.recent() == ()
    await session.close()
    for refused in (session.pop, session.clear):
        with pytest.raises(Conflict):
            await refused()


@pytest.mark.anyio
async def test_a_run_starts_with_its_parts_in_a_session(api: Any) -> None:
    agent = await create_kate(api)
    include = ("files", "prompt", "tools")
    run = await agent.start_run("reply", session_id="chat", include=include, dialect="openai")
    parts = run.parts
    [soul] = [file for file in parts.files if file.path == "SOUL.md"]
    assert isinstance(soul, File)
    assert soul.content == "I am Kate.\n"
    assert parts.prompt == await run.prompt()
    assert {tool["type"] for tool in parts.tools} == {"function"}
    assert run.session_id == "chat"

    again = await agent.start_run(session_id="chat", include=include, if_none_match=parts.etag)
    assert again.parts.not_modified is False  # The tools are in another format.
    same = await agent.start_run(
        "reply", include=include, dialect="openai", if_none_match=parts.etag
    )
    assert (same.parts.not_modified, same.parts.files, same.parts.etag) == (True, None, parts.etag)
    assert (await agent.start_run("plain")).parts is None
    runs = await agent.runs(session_id="chat")
    assert [item.id for item in runs] == [again.id, run.id]


@pytest.mark.anyio
async def test_a_run_ends_with_its_entries_and_its_provenance(api: Any) -> None:
    agent = await create_kate(api)
    run = await agent.start_run("reply", session_id="chat")
    entries = [
        NewEntry(role="user", content="Who?"),
        NewEntry(role="assistant", content="Kate."),
    ]
    await run.finish(entries=entries)
    assert run.status == "completed"
    session = await agent.sessions.get("chat")
    assert session.run_id == run.id
    assert {entry.run_id for entry in await session.recent()} == {run.id}

    chain = await run.provenance()
    assert [(entry.session_id, entry.number) for entry in chain.entries] == [
        *(("chat", 1), ("chat", 2))
    ]
    [soul] = [file for file in chain.files if file.path == "SOUL.md"]
    assert (soul.in_prompt, soul.written.reason) == (True, "first words")
    pinned = [file for file in chain.files if file.file_class == "pinned"]
    assert {file.review.kind for file in pinned} == {"recorded"}
    answer = await session.provenance(2)
    assert answer.run["runId"] == run.id
    assert answer.entries[0].preview == "Kate."
    assert answer.files == chain.files
