"""``carrel apply`` creates agents from a file, uploads their files, and is repeatable."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from tests.client.server_fixture import AgentEditor, json_of
from tests.client.sync_process import STATE, SyncProcess
from tests.support.server_process import TOKEN, ServerProcess, serving
from tests.support.wait import wait_until_sync

from carrel.cli import main
from carrel.cli.apply.agents_file import parse_agents
from carrel.cli.apply.yaml_reader import FileError, parse_yaml

EXAMPLE = File(__file__).parents[2] / "docs/examples"


@dataclass
class ApplyCommand:
    live: ServerProcess
    http: httpx.Client
    dir: File
    agent: str = field(default_factory=lambda: "a" + secrets.token_hex(6))
    code: int = 0

    def apply(self, text: str, *more: str, token: str = TOKEN) -> dict[str, Any]:
        file = self.dir / "agents.yaml"
        file.write_text(text.replace("AGENT", self.agent), "utf-8")
        arguments = ["apply", str(file), "--json", "--url", self.live.url, "--token", token, *more]
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        self.code = result.exit_code
        answered: dict[str, Any] = json.loads(result.stdout)
        return answered

    def facts(self) -> Mapping[str, Any]:
        agent: Mapping[str, Any] = json_of(self.http.get(f"/v1/agents/{self.agent}"))
        return agent

    def own(self) -> dict[str, str]:
        editor = AgentEditor(self.http, self.agent, "")
        return SyncProcess(self.live, editor, self.dir).server_files()


@pytest.fixture
def command(live: ServerProcess, http: httpx.Client, tmp_path: File) -> ApplyCommand:
    return ApplyCommand(live, http, tmp_path)


FULL = """
agents:
  - id: AGENT
    name: Kate
    model: some-model
    transcripts_dir: ./data/AGENT
    workspace_git: {enabled: true}
    dreaming:
      enabled: true
      min_score: 0.5
      weights: {frequency: 0.3}
    allowed_tools: [who_am_i, "memory_*"]
    allowed_delegates: [luis]
    extra_docs: [notes/a.md]
"""


def test_agent_is_created_from_the_file_only_once(command: ApplyCommand) -> None:
    first, second = command.apply(FULL), command.apply(FULL)

    assert [report["agents"][0]["result"] for report in (first, second)] == ["created", "unchanged"]
    assert (first["ok"], second["ok"], command.code) == (True, True, 0)
    assert second["agents"][0]["changes"] == {}
    facts = command.facts()
    assert facts["name"] == "Kate"
    assert facts["config"] == {
        "model": "some-model",
        "transcriptsDir": f"./data/{command.agent}",
        "workspaceGit": {"enabled": True},
        "dreaming": {"enabled": True, "minScore": 0.5, "weights": {"frequency": 0.3}},
        "allowedTools": ["who_am_i", "memory_*"],
        "allowedDelegates": ["luis"],
        "extraDocs": ["notes/a.md"],
    }


def test_fields_absent_from_the_file_stay_and_null_clears(command: ApplyCommand) -> None:
    command.apply(FULL)
    config = {**command.facts()["config"], "sandbox": "sb_1"}
    json_of(
        command.http.patch(
            f"/v1/agents/{command.agent}", json={"config": config, "name": "Renamed"}
        )
    )

    done = command.apply("agents: [{id: AGENT, model: null, allowed_tools: []}]")

    [agent] = done["agents"]
    assert agent["changes"] == {
        "config.model": {"from": "some-model", "to": None},
        "config.allowedTools": {"from": ["who_am_i", "memory_*"], "to": []},
    }
    assert command.facts()["name"] == "Renamed"
    expected = {name: value for name, value in config.items() if name != "model"}
    assert command.facts()["config"] == {**expected, "allowedTools": []}


def test_template_is_named_by_its_slug(command: ApplyCommand) -> None:
    slug = "t" + secrets.token_hex(6)
    json_of(command.http.post("/v1/templates", json={"slug": slug, "name": "T"}))
    text = f"agents: [{{id: AGENT, template: {slug}}}]"
    assert command.apply(text)["agents"][0]["result"] == "created"
    assert command.apply(text)["agents"][0]["result"] == "unchanged"
    assert command.facts()["templateId"] == json_of(command.http.get(f"/v1/templates/{slug}"))["id"]
    assert (
        command.apply("agents: [{id: AGENT, template: null}]")["agents"][0]["result"] == "changed"
    )
    assert command.facts()["templateId"] is None


def test_one_failing_agent_stops_no_other(command: ApplyCommand) -> None:
    other = "b" + secrets.token_hex(6)
    done = command.apply(f"agents: [{{id: {other}, template: unknown}}, {{id: AGENT}}]")
    assert [row["result"] for row in done["agents"]] == ["failed", "created"]
    assert "no such template: unknown" in done["agents"][0]["problem"]
    assert (done["ok"], command.code) == (False, 1)


def test_dry_run_reports_changes_and_makes_none(command: ApplyCommand) -> None:
    (command.dir / "w").mkdir()
    (command.dir / "w/a.md").write_text("mine")
    text = "agents: [{id: AGENT, name: Kate, workspace: w}]"

    planned = command.apply(text, "--dry-run")

    assert (planned["dryRun"], planned["agents"][0]["result"]) == (True, "created")
    assert planned["agents"][0]["taken"] == ["a.md"]
    assert command.http.get(f"/v1/agents/{command.agent}").status_code == 404
    assert [file.name for file in (command.dir / "w").iterdir()] == ["a.md"]
    command.apply(text)
    again = command.apply("agents: [{id: AGENT, name: Grace, workspace: w}]", "--dry-run")
    assert again["agents"][0]["changes"] == {"name": {"from": "Kate", "to": "Grace"}}
    assert command.facts()["name"] == "Kate"


def test_dry_run_reports_the_agents_and_files_that_are_refused(command: ApplyCommand) -> None:
    (command.dir / "w").mkdir()
    for path in ("SOUL.md", "GUARDRAILS.md", "guardrails.md", "USER.md"):
        (command.dir / "w" / path).write_text("mine")
    other = "b" + secrets.token_hex(6)
    text = f"agents: [{{id: {other}, transcripts_dir: /etc/x}}, {{id: AGENT, workspace: w}}]"

    planned, code = command.apply(text, "--dry-run"), command.code
    done = command.apply(text)

    assert (planned["agents"], planned["ok"], code) == (done["agents"], done["ok"], command.code)
    assert [agent["result"] for agent in planned["agents"]] == ["failed", "created"]
    assert planned["agents"][1]["taken"] == ["SOUL.md"]
    assert len(planned["agents"][1]["leftOut"]) == 3


def test_files_of_a_directory_become_the_agents_own_the_first_time(command: ApplyCommand) -> None:
    work = command.dir / "data/workspace/kate"
    (work / "notes").mkdir(parents=True)
    (work / "SOUL.md").write_text("I am Kate.")
    (work / "notes/a.md").write_text("a note")
    (work / "USER.md").write_text("me")
    (work / "GUARDRAILS.md").write_text("none")
    text = "agents: [{id: AGENT, workspace: ./data/workspace/kate}]"

    first = command.apply(text)
    editor = AgentEditor(command.http, command.agent, "")
    editor.delete("notes/a.md")
    second = command.apply(text)

    [agent] = first["agents"]
    assert agent["taken"] == ["SOUL.md", "notes/a.md"]
    reason = {row["path"]: row["problem"] for row in agent["leftOut"]}
    assert reason == {
        "USER.md": "not uploaded: the file is managed",
        "GUARDRAILS.md": "not uploaded: the file is pinned",
    }
    assert (work / "USER.md").read_text("utf-8") == "me"
    assert "taken" not in second["agents"][0], "what was removed since stays removed"
    assert (command.code, command.own()) == (0, {"SOUL.md": "I am Kate."})

    synced = SyncProcess(command.live, editor, work)
    synced.sync()
    assert not (work / "notes/a.md").exists()
    assert synced.server_files() == {"SOUL.md": "I am Kate."}


def test_files_on_the_server_are_not_overwritten(command: ApplyCommand) -> None:
    command.apply("agents: [{id: AGENT}]")
    editor = AgentEditor(command.http, command.agent, "")
    editor.put("SOUL.md", "theirs")
    editor.put("same.md", "same")
    (command.dir / "w").mkdir()
    (command.dir / "w/SOUL.md").write_text("mine")
    (command.dir / "w/same.md").write_text("same")

    done = command.apply("agents: [{id: AGENT, workspace: w}]")

    assert [row["path"] for row in done["agents"][0]["leftOut"]] == ["SOUL.md"]
    assert (done["agents"][0]["taken"], command.code) == ([], 1)
    assert command.own() == {"SOUL.md": "theirs", "same.md": "same"}
    assert (command.dir / "w/SOUL.md").read_text("utf-8") == "mine"


def test_absent_directory_is_not_created(command: ApplyCommand) -> None:
    assert command.apply("agents: [{id: AGENT, workspace: ./nowhere}]")["ok"]
    assert not (command.dir / "nowhere").exists()


def test_directory_that_is_being_synced_is_left_alone(command: ApplyCommand) -> None:
    (command.dir / "w").mkdir()
    text = "agents: [{id: AGENT, workspace: w}]"
    command.apply(text)
    synced = SyncProcess(
        command.live, AgentEditor(command.http, command.agent, ""), command.dir / "w"
    )
    with synced.watched():
        synced.write("a.md", "mine")
        wait_until_sync(
            lambda: synced.server_files() == {"a.md": "mine"},
            "the server has a.md alone, with: mine",
        )
        assert command.apply(text)["ok"]


def test_missing_permission_is_reported(command: ApplyCommand) -> None:
    body = {"name": "k", "kind": "service", "scopes": ["tenant:read"]}
    key = json_of(command.http.post("/v1/keys", json=body))["key"]
    done = command.apply("agents: [{id: AGENT}]", token=key)
    assert (done["agents"][0]["result"], command.code) == ("failed", 1)
    assert "tenant:admin" in done["agents"][0]["problem"]
    assert "credential" in command.apply("agents: [{id: AGENT}]", token="wrong")["problem"]


def test_example_of_the_documentation_is_accepted(tmp_path: File) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "examples")
    with serving(tmp_path / "store") as live:
        arguments = ["apply", str(tmp_path / "examples/agents.yaml")]
        arguments += ["--url", live.url, "--token", TOKEN]
        first, second = (CliRunner().invoke(main, arguments) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert first.stdout == "kate: created, 2 files uploaded\nluis: created\n"
    assert second.stdout == "kate: unchanged\nluis: unchanged\n"
    assert (tmp_path / "examples/kate" / STATE).exists()


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the file must be a mapping"),
        ("agents: {}", 1, "agents must be a list"),
        ("agents: []\nmore: 1", 2, "more is unknown"),
        ("agents:\n- id: a\n  workspce: x", 3, "workspce is unknown"),
        ("agents:\n- id: a\n  dreaming:\n    enable: true", 4, "dreaming.enable is unknown"),
        ("agents:\n- id: a\n  dreaming: {weights: {x: 1}}", 3, "dreaming.weights.x is unknown"),
        ("agents:\n- id: a\n  dreaming: {min_score: 2}", 3, "config: Expected"),
        ("agents:\n- id: a\n  dreaming: 1", 3, "dreaming must be a mapping"),
        ("agents:\n- id: a\n  allowed_tools: x", 3, "config: Expected `array`"),
        ("agents:\n- id: a\n  min: 1\n", 3, "min is unknown"),
        ("agents:\n- name: a", 2, "an agent must have an id"),
        ("agents:\n- id: 12", 2, "id must be text; quote the value"),
        ("agents:\n- id: A b", 2, "is not a slug"),
        ("agents:\n- id: admin", 2, "admin"),
        ("agents:\n- id: a\n- id: b\n- id: a", 4, "a is listed twice, first in line 2"),
        ("agents:\n- id: a\n  id: b", 3, "'id' is a duplicate key, first in line 2"),
        ("agents:\n- id: a\n  name: !!python/name:os.system x", 3, "tags such as"),
        ("agents:\n- id: a\n  name: !!str x", 3, "tags such as"),
        ("agents:\n- id: a\n  name: 2024-01-01", 3, "is neither text nor a number"),
        ("agents:\n- id: a\n  <<: {name: x}", 3, "quote it"),
        ("agents:\n- id: a\n  name: .inf", 3, "a number must be finite"),
        ("agents: &a [*a]", 1, "aliases expand to too many values or are recursive"),
        ("agents: [\n", 2, "expected"),
        ("a: *b", 1, "found undefined alias"),
        ("--- {}\n--- {}", 2, "but found another document"),
        ("agents: " + "[" * 50_000, 1, "too deeply nested or too many values"),
        ("agents:\n- id: a\n  workspace: w\n- id: b\n  workspace: ./x/../w", 4, "same workspace"),
        ("agents:\n- id: a\n  workspace: w\n- id: b\n  workspace: w/b", 4, "is within that of a"),
        ("agents:\n- id: a\n  workspace: file", 3, "is not a directory"),
        ('agents:\n- id: a\n  workspace: "a\\0b"', 3, "not a valid directory name"),
        ('agents:\n- id: a\n  workspace: "\\ud800"', 3, "not a valid directory name"),
        ("agents:\n- id: a\n  name: \x01", 1, "invalid YAML"),
        ("x" * (2**20 + 1), 1, "the file is too large; at most 1048576 bytes are allowed"),
    ],
)
def test_invalid_file_is_refused_with_its_line(
    text: str, line: int, reason: str, tmp_path: File
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError) as refused:
        parse_agents(text, tmp_path)
    assert reason in str(refused.value)
    assert refused.value.line == line, str(refused.value)


def test_yaml_references_are_expanded_within_a_limit() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for number in range(1, 9):
        bomb += f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n"
    with pytest.raises(FileError, match="aliases expand to too many values"):
        parse_yaml(bomb)
    text = "agents: [{id: a, allowed_tools: &t [x]}, {id: b, allowed_tools: *t}]"
    assert [agent.config for agent in parse_agents(text, "")] == [{"allowedTools": ["x"]}] * 2


def test_unreadable_file_is_reported_in_one_line(command: ApplyCommand) -> None:
    file = command.dir / "x.yaml"
    for content in (None, b"\xff"):
        if content is not None:
            file.write_bytes(content)
        arguments = ["apply", str(file), "--url", command.live.url, "--token", TOKEN]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
