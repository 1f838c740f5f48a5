"""``carrel apply`` makes agents as a file says, takes their files over, and can be repeated."""

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
from tests.client.server_fixture import Hands, made
from tests.client.sync_process import STATE, Synced, wait_for
from tests.support.server_process import TOKEN, Live, serving

from carrel.cli import main
from carrel.cli.apply.agents_file import parse_agents
from carrel.cli.apply.yaml_reader import FileError, parse_yaml

EXAMPLE = File(__file__).parents[2] / "docs/examples"


@dataclass
class Desk:
    live: Live
    http: httpx.Client
    dir: File
    agent: str = field(default_factory=lambda: "a" + secrets.token_hex(6))
    code: int = 0

    def apply(self, text: str, *more: str, token: str = TOKEN) -> dict[str, Any]:
        file = self.dir / "agents.yaml"
        file.write_text(text.replace("AGENT", self.agent), "utf-8")
        told = ["apply", str(file), "--json", "--url", self.live.url, "--token", token, *more]
        result = CliRunner().invoke(main, told)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        self.code = result.exit_code
        answered: dict[str, Any] = json.loads(result.stdout)
        return answered

    def facts(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = made(self.http.get(f"/v1/agents/{self.agent}"))
        return found

    def own(self) -> dict[str, str]:
        hands = Hands(self.http, self.agent, "")
        return Synced(self.live, hands, self.dir).there()


@pytest.fixture
def desk(live: Live, http: httpx.Client, tmp_path: File) -> Desk:
    return Desk(live, http, tmp_path)


FULL = """
agents:
  - id: AGENT
    name: Kate
    model: some-model
    transcripts_dir: ./data/t
    workspace_git: {enabled: true}
    dreaming:
      enabled: true
      min_score: 0.5
      weights: {frequency: 0.3}
    allowed_tools: [who_am_i, "memory_*"]
    allowed_delegates: [luis]
    extra_docs: [notes/a.md]
"""


def test_an_agent_is_made_as_the_file_says_and_only_once(desk: Desk) -> None:
    first, second = desk.apply(FULL), desk.apply(FULL)

    assert [each["agents"][0]["result"] for each in (first, second)] == ["created", "unchanged"]
    assert (first["ok"], second["ok"], desk.code) == (True, True, 0)
    assert second["agents"][0]["changes"] == {}
    facts = desk.facts()
    assert facts["name"] == "Kate"
    assert facts["config"] == {
        "model": "some-model",
        "transcriptsDir": "./data/t",
        "workspaceGit": {"enabled": True},
        "dreaming": {"enabled": True, "minScore": 0.5, "weights": {"frequency": 0.3}},
        "allowedTools": ["who_am_i", "memory_*"],
        "allowedDelegates": ["luis"],
        "extraDocs": ["notes/a.md"],
    }


def test_what_the_file_does_not_speak_of_stays_and_null_takes_back(desk: Desk) -> None:
    desk.apply(FULL)
    config = {**desk.facts()["config"], "sandbox": "sb_1"}
    made(desk.http.patch(f"/v1/agents/{desk.agent}", json={"config": config, "name": "Renamed"}))

    done = desk.apply("agents: [{id: AGENT, model: null, allowed_tools: []}]")

    [agent] = done["agents"]
    assert agent["changes"] == {
        "config.model": {"from": "some-model", "to": None},
        "config.allowedTools": {"from": ["who_am_i", "memory_*"], "to": []},
    }
    assert desk.facts()["name"] == "Renamed"
    expected = {name: value for name, value in config.items() if name != "model"}
    assert desk.facts()["config"] == {**expected, "allowedTools": []}


def test_a_template_is_followed_by_its_slug(desk: Desk) -> None:
    slug = "t" + secrets.token_hex(6)
    made(desk.http.post("/v1/templates", json={"slug": slug, "name": "T"}))
    text = f"agents: [{{id: AGENT, template: {slug}}}]"
    assert desk.apply(text)["agents"][0]["result"] == "created"
    assert desk.apply(text)["agents"][0]["result"] == "unchanged"
    assert desk.facts()["templateId"] == made(desk.http.get(f"/v1/templates/{slug}"))["id"]
    assert desk.apply("agents: [{id: AGENT, template: null}]")["agents"][0]["result"] == "changed"
    assert desk.facts()["templateId"] is None


def test_one_that_cannot_be_made_keeps_none_of_the_others(desk: Desk) -> None:
    other = "b" + secrets.token_hex(6)
    done = desk.apply(f"agents: [{{id: {other}, template: nobody}}, {{id: AGENT}}]")
    assert [each["result"] for each in done["agents"]] == ["failed", "created"]
    assert "there is no template nobody" in done["agents"][0]["problem"]
    assert (done["ok"], desk.code) == (False, 1)


def test_a_dry_run_says_what_would_change_and_changes_nothing(desk: Desk) -> None:
    (desk.dir / "w").mkdir()
    (desk.dir / "w/a.md").write_text("mine")
    text = "agents: [{id: AGENT, name: Kate, workspace: w}]"

    planned = desk.apply(text, "--dry-run")

    assert (planned["dryRun"], planned["agents"][0]["result"]) == (True, "created")
    assert planned["agents"][0]["taken"] == ["a.md"]
    assert desk.http.get(f"/v1/agents/{desk.agent}").status_code == 404
    assert [file.name for file in (desk.dir / "w").iterdir()] == ["a.md"]
    desk.apply(text)
    again = desk.apply("agents: [{id: AGENT, name: Grace, workspace: w}]", "--dry-run")
    assert again["agents"][0]["changes"] == {"name": {"from": "Kate", "to": "Grace"}}
    assert desk.facts()["name"] == "Kate"


def test_the_files_of_a_directory_become_the_agent_s_own_the_first_time(desk: Desk) -> None:
    work = desk.dir / "data/workspace/kate"
    (work / "notes").mkdir(parents=True)
    (work / "SOUL.md").write_text("I am Kate.")
    (work / "notes/a.md").write_text("a note")
    (work / "USER.md").write_text("me")
    (work / "GUARDRAILS.md").write_text("none")
    text = "agents: [{id: AGENT, workspace: ./data/workspace/kate}]"

    first = desk.apply(text)
    hands = Hands(desk.http, desk.agent, "")
    hands.delete("notes/a.md")
    second = desk.apply(text)

    [agent] = first["agents"]
    assert agent["taken"] == ["SOUL.md", "notes/a.md"]
    reason = {each["path"]: each["problem"] for each in agent["leftOut"]}
    assert reason == {
        "USER.md": "it is managed: it was not taken",
        "GUARDRAILS.md": "it is pinned: it was not taken",
    }
    assert (work / "USER.md").read_text("utf-8") == "me"
    assert "taken" not in second["agents"][0], "what was removed since stays removed"
    assert (desk.code, desk.own()) == (0, {"SOUL.md": "I am Kate."})

    synced = Synced(desk.live, hands, work)
    synced.sync()
    assert not (work / "notes/a.md").exists()
    assert synced.there() == {"SOUL.md": "I am Kate."}


def test_what_the_server_has_already_is_not_written_over(desk: Desk) -> None:
    desk.apply("agents: [{id: AGENT}]")
    hands = Hands(desk.http, desk.agent, "")
    hands.put("SOUL.md", "theirs")
    hands.put("same.md", "same")
    (desk.dir / "w").mkdir()
    (desk.dir / "w/SOUL.md").write_text("mine")
    (desk.dir / "w/same.md").write_text("same")

    done = desk.apply("agents: [{id: AGENT, workspace: w}]")

    assert [each["path"] for each in done["agents"][0]["leftOut"]] == ["SOUL.md"]
    assert (done["agents"][0]["taken"], desk.code) == ([], 1)
    assert desk.own() == {"SOUL.md": "theirs", "same.md": "same"}
    assert (desk.dir / "w/SOUL.md").read_text("utf-8") == "mine"


def test_a_directory_that_is_not_there_is_not_made(desk: Desk) -> None:
    assert desk.apply("agents: [{id: AGENT, workspace: ./nowhere}]")["ok"]
    assert not (desk.dir / "nowhere").exists()


def test_while_a_directory_is_being_synced_it_is_left_alone(desk: Desk) -> None:
    (desk.dir / "w").mkdir()
    text = "agents: [{id: AGENT, workspace: w}]"
    desk.apply(text)
    synced = Synced(desk.live, Hands(desk.http, desk.agent, ""), desk.dir / "w")
    with synced.watched():
        synced.write("a.md", "mine")
        wait_for(lambda: synced.there() == {"a.md": "mine"})
        assert desk.apply(text)["ok"]


def test_whoever_may_not_is_told(desk: Desk) -> None:
    body = {"name": "k", "kind": "service", "scopes": ["tenant:read"]}
    key = made(desk.http.post("/v1/keys", json=body))["key"]
    done = desk.apply("agents: [{id: AGENT}]", token=key)
    assert (done["agents"][0]["result"], desk.code) == ("failed", 1)
    assert "tenant:admin" in done["agents"][0]["problem"]
    assert "credential" in desk.apply("agents: [{id: AGENT}]", token="wrong")["problem"]


def test_the_example_of_the_documentation_is_taken(tmp_path: File) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "examples")
    with serving(tmp_path / "store") as live:
        told = ["apply", str(tmp_path / "examples/agents.yaml")]
        told += ["--url", live.url, "--token", TOKEN]
        first, second = (CliRunner().invoke(main, told) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert first.stdout == "kate: created, 2 files taken\nluis: created\n"
    assert second.stdout == "kate: unchanged\nluis: unchanged\n"
    assert (tmp_path / "examples/kate" / STATE).exists()


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "the file must be a mapping"),
        ("agents: {}", 1, "agents must be a list"),
        ("agents: []\nmore: 1", 2, "more is not known"),
        ("agents:\n- id: a\n  workspce: x", 3, "workspce is not known"),
        ("agents:\n- id: a\n  dreaming:\n    enable: true", 4, "dreaming.enable is not known"),
        ("agents:\n- id: a\n  dreaming: {weights: {x: 1}}", 3, "dreaming.weights.x is not known"),
        ("agents:\n- id: a\n  dreaming: {min_score: 2}", 3, "config: Expected"),
        ("agents:\n- id: a\n  dreaming: 1", 3, "dreaming must be a mapping"),
        ("agents:\n- id: a\n  allowed_tools: x", 3, "config: Expected `array`"),
        ("agents:\n- id: a\n  min: 1\n", 3, "min is not known"),
        ("agents:\n- name: a", 2, "an agent must have an id"),
        ("agents:\n- id: 12", 2, "id must be text; quote it"),
        ("agents:\n- id: A b", 2, "is not a slug"),
        ("agents:\n- id: admin", 2, "admin"),
        ("agents:\n- id: a\n- id: b\n- id: a", 4, "a is there twice, first in line 2"),
        ("agents:\n- id: a\n  id: b", 3, "'id' is said twice, first in line 2"),
        ("agents:\n- id: a\n  name: !!python/name:os.system x", 3, "tags such as"),
        ("agents:\n- id: a\n  name: !!str x", 3, "tags such as"),
        ("agents:\n- id: a\n  name: 2024-01-01", 3, "is neither text nor a number"),
        ("agents:\n- id: a\n  <<: {name: x}", 3, "quote it"),
        ("agents:\n- id: a\n  name: .inf", 3, "a number must be finite"),
        ("agents: &a [*a]", 1, "refers to too much, or to itself"),
        ("agents: [\n", 2, "expected"),
        ("a: *b", 1, "found undefined alias"),
        ("--- {}\n--- {}", 2, "but found another document"),
        ("agents: " + "[" * 50_000, 1, "too deep or too long"),
        ("agents:\n- id: a\n  workspace: w\n- id: b\n  workspace: ./x/../w", 4, "same workspace"),
        ("agents:\n- id: a\n  workspace: w\n- id: b\n  workspace: w/b", 4, "is within that of a"),
        ("agents:\n- id: a\n  workspace: file", 3, "is not a directory"),
        ('agents:\n- id: a\n  workspace: "a\\0b"', 3, "no name of a directory"),
        ('agents:\n- id: a\n  workspace: "\\ud800"', 3, "no name of a directory"),
        ("agents:\n- id: a\n  name: \x01", 1, "it is not YAML"),
        ("x" * (2**20 + 1), 1, "the file may have"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(
    text: str, line: int, why: str, tmp_path: File
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError) as refused:
        parse_agents(text, tmp_path)
    assert why in str(refused.value)
    assert refused.value.line == line, str(refused.value)


def test_what_is_said_once_may_be_referred_to_but_not_a_million_times() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for number in range(1, 9):
        bomb += f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n"
    with pytest.raises(FileError, match="refers to too much"):
        parse_yaml(bomb)
    text = "agents: [{id: a, allowed_tools: &t [x]}, {id: b, allowed_tools: *t}]"
    assert [each.config for each in parse_agents(text, "")] == [{"allowedTools": ["x"]}] * 2


def test_a_file_that_is_no_text_or_not_there_is_said_in_a_line(desk: Desk) -> None:
    file = desk.dir / "x.yaml"
    for content in (None, b"\xff"):
        if content is not None:
            file.write_bytes(content)
        told = ["apply", str(file), "--url", desk.live.url, "--token", TOKEN]
        result = CliRunner().invoke(main, told)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
