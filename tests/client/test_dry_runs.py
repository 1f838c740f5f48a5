"""Dry runs of import and apply report what the real run does, and change nothing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor, json_of

import carrel
from carrel.cli.apply import reconcile
from carrel.cli.apply.agents_file import DesiredAgent
from carrel.cli.dry_run import DryRun, dry_run_client
from carrel.cli.import_files.directory_scan import scan_directory
from carrel.cli.import_files.import_plan import ImportOptions, execute_plan, plan_import
from carrel.cli.sync import sync_pass
from carrel_client import AsyncClient, NotFound

SECRET = "AKIA" + "Q3EGLTYZ5JPDCKWM"
EXAMPLES = {"sqlite": 25, "postgres": 8}
PATHS = (
    *("SOUL.md", "soul.md", "GUARDRAILS.md", "Guardrails.md", "USER.md", "user.md"),
    *("IDENTITY.md", "notes", "notes/a.md", "notes/a.md/b.md", "b.md", f"{SECRET}.md"),
)
TEXTS = ("", "one", "{{agent_name}} is {{unknown}}", f"key: {SECRET}", "x" * 600, "x" * 1100)
files = st.dictionaries(st.sampled_from(PATHS), st.sampled_from(TEXTS), max_size=8)
limits = st.fixed_dictionaries(
    {"maxFileBytes": st.just(1024)},
    optional={"maxFiles": st.integers(1, 30), "maxBytes": st.integers(500, 40_000)},
)


@dataclass
class StoreClient:
    """A client in this process, and a directory of files."""

    client: Any
    runner: asyncio.Runner
    directory: File
    numbers: Iterator[int] = field(default_factory=count)

    def write_directory(self, texts: Mapping[str, str]) -> File:
        """Replace the directory; a file wins over those below it."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        for path in sorted(texts):
            if not any(parent.as_posix() in texts for parent in File(path).parents):
                (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
                (self.directory / path).write_text(texts[path], "utf-8")
        return self.directory

    async def set_up(self, setting: Mapping[str, Any]) -> tuple[str, str]:
        """Create a template and an agent with files; those that are refused are left out."""
        number = next(self.numbers)
        await self.client.policy.put({}, reason="to begin")
        template = (await self.client.templates.create(f"t{number}", "T")).slug
        await self._put_all(self.client.template(template), setting["template"])
        agent = (await self.client.agents.create(f"a{number}", "Ada", template_id=template)).slug
        await self._put_all(self.client.agent(agent), setting["agent"])
        policy = {"limits": setting["limits"]}
        await self.client.policy.put(policy, reason="to limit")
        return template, agent

    async def _put_all(self, place: Any, texts: Mapping[str, str]) -> None:
        for path, text in texts.items():
            try:
                await place.put(path, text)
            except carrel.CarrelError:
                continue

    async def state(self) -> Any:
        """All that a write changes: records, audit, files and their versions."""
        agents = await self.client.agents.list()
        return (
            agents,
            await self.client.templates.list(),
            await self.client.audit.list(),
            [await self.client.agent(agent.id).list() for agent in agents[-3:]],
            await self.client.defaults.list(),
            await self.client._ports.records.revision(),
        )


@contextmanager
def open_store_client(location: str, directory: File) -> Iterator[StoreClient]:
    with asyncio.Runner() as runner:
        opened = carrel.open(location, data=str(directory / "data"))
        client = runner.run(opened.__aenter__())
        try:
            yield StoreClient(client, runner, directory / "local")
        finally:
            runner.run(opened.__aexit__(None, None, None))


@pytest.fixture(params=EXAMPLES)
def store(request: pytest.FixtureRequest, tmp_path: File) -> Iterator[StoreClient]:
    location = str(tmp_path / "data")
    if request.param == "postgres":
        location = str(request.getfixturevalue("postgres_url"))
    with open_store_client(location, tmp_path) as opened:
        yield opened


async def import_report(
    client: AsyncClient, target: str, name: str, directory: File, *, accept: bool, batch: int | None
) -> Any:
    """Run an import or, with the size of its batches, a dry run."""
    client = dry_run_client(client, "") if batch else client
    options = ImportOptions(None, accept, batch or 1)
    places: Mapping[str, Any] = {
        "agent": client.agent,
        "template": client.template,
        "defaults": lambda _: client.defaults,
        "workspace": client.workspace,
    }
    local, place = scan_directory(str(directory)), places[target](name)
    steps = plan_import(local, {row.path: row for row in await place.list()})
    await execute_plan(place, local, steps, options, lambda *_: None)
    return steps


@pytest.mark.parametrize("target", ["agent", "template", "defaults", "workspace"])
def test_the_dry_run_of_an_import_reports_what_the_import_does(
    store: StoreClient, target: str, request: pytest.FixtureRequest
) -> None:
    refusals: set[str] = set()

    @settings(max_examples=EXAMPLES[request.node.callspec.params["store"]], database=None)
    @given(
        setting=st.fixed_dictionaries({"template": files, "agent": files, "limits": limits}),
        local=files,
        accept=st.booleans(),
        batch=st.sampled_from([1, 3, 250]),
    )
    def compare(
        setting: Mapping[str, Any], local: Mapping[str, str], accept: bool, batch: int
    ) -> None:
        async def run() -> None:
            template, agent = await store.set_up(setting)
            name = agent if target == "agent" else template
            directory, before = store.write_directory(local), await store.state()
            arguments = (store.client, target, name, directory)
            dry = await import_report(*arguments, accept=accept, batch=batch)
            assert await store.state() == before
            real = await import_report(*arguments, accept=accept, batch=None)
            assert dry == real
            refusals.update(step.problem for step in real if step.problem)

        store.runner.run(run())

    compare()
    assert refusals, "the files of this test are refused for many reasons"


def test_the_dry_run_of_an_apply_reports_what_the_apply_does(
    store: StoreClient, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "SETTLE_SECONDS", 0)
    monkeypatch.setattr(sync_pass, "DRY_RUN_CONCURRENCY", 3)

    @settings(max_examples=EXAMPLES[request.node.callspec.params["store"]], database=None)
    @given(
        setting=st.fixed_dictionaries({"template": files, "agent": files, "limits": limits}),
        local=files,
        is_new=st.booleans(),
        has_template=st.booleans(),
        settings_of_agent=st.sampled_from(
            [{}, {"transcriptsDir": "../out"}, {"timezone": "Nowhere/City"}, {"model": "m"}]
        ),
        name=st.sampled_from([None, "Grace", SECRET]),
    )
    def compare(
        setting: Mapping[str, Any],
        local: Mapping[str, str],
        is_new: bool,
        has_template: bool,
        settings_of_agent: Mapping[str, Any],
        name: str | None,
    ) -> None:
        async def run() -> None:
            template, agent = await store.set_up(setting)
            directory, before = store.write_directory(local), await store.state()
            facts = {"template": template if has_template else None}
            desired = DesiredAgent(
                f"new-{agent}" if is_new else agent,
                1,
                facts if name is None else {**facts, "name": name},
                settings_of_agent,
                str(directory),
            )
            dry = await reconcile.apply_agent(
                store.client, "local", desired, dry_run=DryRun(store.client, "local")
            )
            assert await store.state() == before
            assert not list(directory.glob(".carrel*"))
            real = await reconcile.apply_agent(store.client, "local", desired)
            assert dry == real

        store.runner.run(run())

    compare()


def test_the_dry_run_of_an_apply_judges_agents_after_each_other(store: StoreClient) -> None:
    async def run() -> None:
        await store.client.agents.create("had-it", "Ada", config={"transcriptsDir": "logs"})
        folders = {"had-it": "other", "takes-it": "logs", "too-late": "other"}
        agents = [
            DesiredAgent(id, 1, {}, {"transcriptsDir": folder}, None)
            for id, folder in folders.items()
        ]
        dry_run = DryRun(store.client, "local")
        dry = [
            await reconcile.apply_agent(store.client, "local", agent, dry_run=dry_run)
            for agent in agents
        ]
        real = [await reconcile.apply_agent(store.client, "local", agent) for agent in agents]
        assert dry == real
        assert [result.result for result in real] == ["changed", "created", "failed"]

    store.runner.run(run())


def test_dry_run_of_an_import_counts_refused_files_as_failed(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: File
) -> None:
    editor.put("notes", "a file")
    for path in ("GUARDRAILS.md", "USER.md", "guardrails.md", "notes/a.md"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("mine")
    for path in ("SOUL.md", "b.md", "c.md"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("mine")

    dry = carrel("import", tmp_path, editor.agent, "--dry-run")
    real = carrel("import", tmp_path, editor.agent)

    assert (dry.exit_code, real.exit_code) == (1, 1)
    assert dry.stderr.endswith(f"{editor.agent}: 3 would be written, 0 equal, 4 failed\n")
    assert real.stderr.endswith(f"{editor.agent}: 3 written, 0 equal, 4 failed\n")
    errors = [line for line in dry.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [line for line in real.stderr.splitlines() if line.startswith("error: ")]


COLLISION = "guardrails.md collides on some file systems with a path that is pinned"


@pytest.mark.parametrize(
    ("local", "limit", "problems"),
    [
        (("GUARDRAILS.md", "guardrails.md"), {}, {"guardrails.md": COLLISION}),
        (
            ("\u00e9", "e\u0301/a.md"),
            {},
            {"\u00e9/a.md": "\u00e9/a.md cannot be a file: \u00e9 is a file"},
        ),
        (("b", "c", "d"), {"maxFiles": 3}, {"d": "the workspace may have 3 files"}),
        (("b", "c", "d"), {"maxBytes": 25}, {"d": "the workspace may have 25 bytes"}),
    ],
)
def test_files_of_one_dry_run_are_judged_after_each_other(
    local: tuple[str, ...], limit: Mapping[str, int], problems: Mapping[str, str], tmp_path: File
) -> None:
    with open_store_client(str(tmp_path / "data"), tmp_path) as store:

        async def run() -> None:
            setting = {"template": {"a": "x"}, "agent": {}, "limits": limit}
            template, _ = await store.set_up(setting)
            directory = store.write_directory(dict.fromkeys(local, "ten bytes."))
            arguments = (store.client, "template", template, directory)
            for batch in (1, 250, None):
                steps = await import_report(*arguments, accept=False, batch=batch)
                assert {step.path: step.problem for step in steps if step.problem} == problems

        store.runner.run(run())


def test_a_redacted_file_that_equals_the_inherited_one_is_not_counted_as_written(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: File
) -> None:
    editor.put("a.md", f"key: {SECRET}", "templates")
    (tmp_path / "a.md").write_text(f"key: {SECRET}")
    for options in (["--dry-run"], []):
        [row] = carrel.json("import", tmp_path, editor.agent, *options)["files"]
        assert (row["change"], row["written"], row["redacted"]) == ("equal", False, True)
    rows = json_of(editor.http.get(f"/v1/agents/{editor.agent}/files"))["files"]
    assert {row["source"] for row in rows if row["path"] == "a.md"} == {"template"}


def test_contents_of_a_dry_run_are_not_stored(tmp_path: File) -> None:
    with open_store_client(str(tmp_path / "data"), tmp_path) as store:

        async def run() -> None:
            await store.client.agents.create("ada", "Ada")
            before = {file: file.stat().st_size for file in (tmp_path / "data").rglob("*")}
            body = {"content": "x" * 900_000}
            put = {"method": "PUT", "path": "/v1/agents/ada/files/a.md", "body": body}
            dry = await store.client.dry_run([put])
            assert [response.status for response in dry.responses] == [200]
            after = {file: file.stat().st_size for file in (tmp_path / "data").rglob("*")}
            assert after == before

        store.runner.run(run())


def test_later_requests_of_a_dry_run_see_earlier_ones_by_its_state(tmp_path: File) -> None:
    with open_store_client(str(tmp_path / "data"), tmp_path) as store:

        async def run() -> None:
            create = {
                "method": "POST",
                "path": "/v1/agents",
                "body": {"slug": "ada", "name": "Ada"},
            }
            url = "/v1/agents/ada/files"
            put = {"method": "PUT", "path": f"{url}/notes", "body": {"content": "x"}}
            below = {"method": "PUT", "path": f"{url}/notes/a.md", "body": {"content": "x"}}
            first = await store.client.dry_run([create, put])
            second = await store.client.dry_run(
                [create, below, {"method": "GET", "path": url}], state=first.state
            )
            assert [response.status for response in first.responses] == [201, 200]
            assert [response.status for response in second.responses] == [409, 409, 200]
            assert "notes" in {row["path"] for row in second.responses[2].body["files"]}
            rename = {"method": "PATCH", "path": "/v1/agents/ada", "body": {"name": "Eve"}}
            identity = {"method": "PUT", "path": f"{url}/IDENTITY.md", "body": {"content": "Ada"}}
            third = await store.client.dry_run([identity], state=second.state)
            fourth = await store.client.dry_run([rename], state=third.state)
            assert [response.status for response in third.responses] == [200]
            assert fourth.responses[0].status == 409, "contents are not in the state"
            with pytest.raises(NotFound):
                await store.client.agents.get("ada")

        store.runner.run(run())


def test_a_dry_run_answers_only_requests_that_it_can_undo(
    http: httpx.Client, editor: AgentEditor
) -> None:
    hostile = [
        {"method": "POST", "path": "/v1/keys", "body": {"name": "k", "kind": "service"}},
        {"method": "POST", "path": "/v1/dry-run", "body": {"requests": []}},
        {"method": "PUT", "path": "/v1/policy", "body": {}},
        {"method": "POST", "path": "/v1/templates", "body": {"slug": "t", "name": "T"}},
        {"method": "PUT", "path": "/v1/host/workspace/files/a.md", "body": {"content": "x"}},
        {"method": "PUT", "path": editor.url("a.md") + "/restore", "body": {}},
        {"method": "GET", "path": "/v1/agents/%ff/files"},
        {"method": "PUT", "path": editor.url("a.md"), "body": {"content": 1}},
        {"method": "PUT", "path": editor.url("a.md"), "body": None},
        {"method": "PATCH", "path": f"/v1/agents/{editor.agent}", "body": {"slug": "A b"}},
    ]
    answer = json_of(http.post("/v1/dry-run", json={"requests": hostile}))
    statuses = [response["status"] for response in answer["responses"]]
    assert all(400 <= status < 500 for status in statuses), statuses
    for body in ({"requests": [{"method": "PUT", "path": "/é"}]}, {"requests": hostile * 32}):
        assert http.post("/v1/dry-run", json=body).status_code == 400


def test_requests_of_a_dry_run_need_their_permissions(
    http: httpx.Client, live: Any, editor: AgentEditor
) -> None:
    body = {"name": "k", "kind": "service", "scopes": ["workspace:read"]}
    key = json_of(http.post("/v1/keys", json=body))["key"]
    put = {"method": "PUT", "path": editor.url("a.md"), "body": {"content": "x"}}
    reader = {"Authorization": f"Bearer {key}"}
    answer = json_of(http.post("/v1/dry-run", json={"requests": [put]}, headers=reader))
    assert [response["status"] for response in answer["responses"]] == [403]
    answer = json_of(http.post("/v1/dry-run", json={"requests": [put]}))
    assert [response["status"] for response in answer["responses"]] == [200]
    for state in (answer["state"], answer["state"][:-2], "x"):
        stolen: dict[str, Any] = {"requests": [], "state": state}
        assert http.post("/v1/dry-run", json=stolen, headers=reader).status_code == 400
    assert (
        http.post("/v1/dry-run", json={"requests": []}, headers={"Authorization": "x"}).status_code
        == 401
    )
