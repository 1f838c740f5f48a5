"""Attached workspaces in prompts, fixed for a run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant, race, start_after_yields

from carrel.actions.agents import agents
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import LimitsModel, PolicyModel
from carrel.actions.prompt import lint, prompts
from carrel.actions.runs import diff, runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.core.errors import NotFound, ValidationError
from carrel.core.files.file_kinds import LINK_TYPE
from carrel.core.identifiers import Path
from carrel.core.prompt.lint import LintRule
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.record import Record
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
MEMORY = Path("MEMORY.md")


class AttachedTenant:
    """A tenant whose agent has a writable and a read-only workspace."""

    def __init__(self, tenant: OverlayTenant) -> None:
        self.tenant, self.ports, self.owner = tenant, tenant.ports, tenant.owner

    @classmethod
    async def of(cls, ports: Ports) -> AttachedTenant:
        _, owner = await create_tenant(ports)
        attached_tenant = cls(await OverlayTenant(ports, owner).open())
        attached_tenant.sandbox = await sandboxes.create(ports, owner, {"name": "s"})
        attached_tenant.notes = await workspaces.create(
            ports, owner, {"name": "n", "description": "Ours."}
        )
        attached_tenant.docs = await workspaces.create(ports, owner, {"name": "d"})
        await attached_tenant.remember(attached_tenant.notes, "we like green")
        await attached_tenant.remember(attached_tenant.docs, "page one")
        await attached_tenant.attach()
        return attached_tenant

    sandbox: Record
    notes: Record
    docs: Record

    async def attach(self, **options: Any) -> None:
        attached = [
            {"name": "notes", "workspaceId": self.notes.id},
            {"name": "docs", "workspaceId": self.docs.id, "sandbox": None},
        ]
        config = {"sandbox": self.sandbox.id, "workspaces": attached, **options}
        await agents.patch(self.ports, self.owner, "marco", {"config": config})

    async def remember(self, workspace: Record, text: str, path: Path = MEMORY) -> None:
        stack = await stacks.workspace_stack(self.ports, self.owner, workspace.id)
        await files.put(self.ports, stack, path, text.encode(), self.owner)

    async def load_prompt(self, mode: Audience = Audience.MAIN) -> prompts.AssembledPrompt:
        return await prompts.load_agent_prompt(self.ports, self.owner, "marco", mode)

    async def key(self, mode: Audience = Audience.MAIN) -> str:
        return (await prompts.load_prompt_request(self.ports, self.owner, "marco", mode)).key


async def test_a_prompt_has_the_memory_of_attached_workspaces(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    prompt = await attached_tenant.load_prompt()
    assert "# MEMORY — notes\nwe like green" in prompt.text
    assert "# MEMORY — docs\npage one" in prompt.text
    assert "- notes (default) [fs-" in prompt.text
    assert "]: Ours." in prompt.text
    assert "- docs (read-only) [fs-" in prompt.text
    block = next(
        item for item in prompt.blocks if item.path == f"{attached_tenant.notes.id}/MEMORY.md"
    )
    assert (block.source, block.version) == ("workspace", 1)
    others = (await attached_tenant.load_prompt(Audience.SHARED)).text
    assert "- docs (read-only) [fs-" in others
    assert "green" not in others


async def test_a_memory_that_is_a_link_is_omitted(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    stack = await stacks.workspace_stack(ports, attached_tenant.owner, attached_tenant.notes.id)
    link = WriteOptions(type=LINK_TYPE)
    await files.put(ports, stack, MEMORY, b"/etc/passwd", attached_tenant.owner, link)
    prompt = await attached_tenant.load_prompt()
    assert "/etc/passwd" not in prompt.text
    [block] = [item for item in prompt.blocks if item.name == "MEMORY — notes"]
    assert (block.chars, block.reason) == (0, "it is a symbolic link; links are not followed")


async def test_a_truncated_workspace_memory_is_reported_by_lint(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    path = f"{attached_tenant.notes.id}/MEMORY.md"
    assert path not in {
        flaw.path for flaw in await lint.lint_agent(ports, attached_tenant.owner, "marco")
    }
    await attached_tenant.remember(attached_tenant.notes, "x" * 12_001)
    flaws = {
        flaw.path: flaw.rule
        for flaw in await lint.lint_agent(ports, attached_tenant.owner, "marco")
    }
    assert flaws[path] is LintRule.TRUNCATED


async def test_the_key_changes_with_every_workspace_input_and_nothing_else(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    prompt_keys = [(await attached_tenant.key(), await attached_tenant.key(Audience.SHARED))]

    async def assert_changed(main: bool, shared: bool) -> None:
        current = (await attached_tenant.key(), await attached_tenant.key(Audience.SHARED))
        assert (current[0] != prompt_keys[-1][0], current[1] != prompt_keys[-1][1]) == (
            main,
            shared,
        )
        prompt_keys.append(current)

    await attached_tenant.remember(attached_tenant.docs, "page two")
    await assert_changed(True, False)
    await workspaces.patch(
        ports, attached_tenant.owner, attached_tenant.notes.id, {"description": "Yours."}
    )
    await assert_changed(True, True)
    await workspaces.patch(
        ports, attached_tenant.owner, attached_tenant.notes.id, {"name": "not in the prompt"}
    )
    await assert_changed(False, False)
    disabled = {"config": {"harness": {"enabled": False}}}
    await workspaces.patch(ports, attached_tenant.owner, attached_tenant.docs.id, disabled)
    await assert_changed(True, True)
    await attached_tenant.attach(sandbox=None)
    await assert_changed(True, True)
    assert len({main for main, _ in prompt_keys}) == 5


async def test_a_reference_to_a_deleted_workspace_is_refused_by_name(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    await workspaces.delete(ports, attached_tenant.owner, attached_tenant.docs.id)
    message = f'Referenced workspace not found: {attached_tenant.docs.id} \\(as "docs"\\)'
    with pytest.raises(NotFound, match=message):
        await attached_tenant.load_prompt()
    with pytest.raises(NotFound, match=message):
        await runs.start(ports, attached_tenant.owner, RunRequest(agent="marco"))


async def test_the_prompt_of_a_run_survives_changes_of_its_workspaces(
    anywhere: Ports,
) -> None:
    attached_tenant = await AttachedTenant.of(anywhere)
    ports, owner = attached_tenant.ports, attached_tenant.owner
    shared = LimitsModel(max_versions=1, max_bytes=None)
    await policies.put(ports, owner, PolicyModel(shared_limits=shared))
    started = {
        mode: await runs.start(ports, owner, RunRequest(agent="marco", mode=mode))
        for mode in Audience
    }
    before = {mode: await prompts.load_run_prompt(ports, run) for mode, run in started.items()}
    assert before[Audience.MAIN] == await attached_tenant.load_prompt()
    assert before[Audience.SHARED] == await attached_tenant.load_prompt(Audience.SHARED)
    assert "we like green" in before[Audience.MAIN].text
    for n in range(3):
        await attached_tenant.remember(attached_tenant.notes, f"we like red {n}")
    await workspaces.patch(ports, owner, attached_tenant.notes.id, {"description": "Theirs."})
    await sandboxes.delete(ports, owner, attached_tenant.sandbox.id)
    await agents.patch(ports, owner, "marco", {"config": {}})
    await workspaces.delete(ports, owner, attached_tenant.docs.id)
    await workspaces.delete(ports, owner, attached_tenant.notes.id)
    for mode, run in started.items():
        assert (
            await prompts.load_run_prompt(ports, await runs.get(ports, owner, run.id))
            == before[mode]
        )
        again = await runs.start(ports, owner, RunRequest(replay_of=run.id))
        assert await prompts.load_run_prompt(ports, again) == before[mode]
        child = await runs.start(ports, owner, RunRequest(parent=run.id, share_parent=True))
        assert await prompts.load_run_prompt(ports, child) == before[mode]


async def test_the_files_of_a_run_exclude_attached_workspaces(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    await attached_tenant.remember(attached_tenant.notes, "theirs", Path("theirs.md"))
    run = await runs.start(ports, attached_tenant.owner, RunRequest(agent="marco"))
    assert len(run.attached_layers) == 2
    manifest = await snapshots.load_manifest(ports, run)
    assert not {MEMORY, Path("theirs.md")} & set(manifest.files)
    with pytest.raises(NotFound):
        await snapshots.read_file(ports, run, Path("theirs.md"))
    assert await diff.diff(ports, run) == ()


async def test_a_run_started_during_a_workspace_deletion_is_consistent(ports: Ports) -> None:
    """It lists the workspace with its memory, or the start is refused."""
    attached_tenant = await AttachedTenant.of(ports)
    outcomes = set()
    for turn in range(40):
        deletion = start_after_yields(
            turn, workspaces.delete(ports, attached_tenant.owner, attached_tenant.notes.id)
        )
        start = runs.start(ports, attached_tenant.owner, RunRequest(agent="marco"))
        (started, lost) = await race(start, deletion)
        outcomes.add(bool(lost))
        if lost:
            assert str(lost[0]).startswith("Referenced workspace not found")
            assert not [
                run for run in await list_runs(attached_tenant) if run.status is RunStatus.RUNNING
            ]
        else:
            text = (await prompts.load_run_prompt(ports, started[0])).text
            assert "# MEMORY — notes\nwe like green" in text
            await runs.update(
                ports, attached_tenant.owner, started[0].id, status=RunStatus.COMPLETED
            )
        attached_tenant.notes = await workspaces.create(ports, attached_tenant.owner, {"name": "n"})
        await attached_tenant.remember(attached_tenant.notes, "we like green")
        await attached_tenant.attach()
    assert outcomes == {True, False}


async def list_runs(attached_tenant: AttachedTenant) -> tuple[Run, ...]:
    return (await runs.list_runs(attached_tenant.ports, attached_tenant.owner)).items


async def test_a_caller_cannot_set_the_attached_workspaces_of_a_run(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    for name in ("prompt:attached:000", "prompt:tools"):
        with pytest.raises(ValidationError, match=name):
            await runs.start(
                ports, attached_tenant.owner, RunRequest(agent="marco", variables={name: "x"})
            )


async def test_tools_that_the_agent_may_not_use_are_not_mentioned(ports: Ports) -> None:
    attached_tenant = await AttachedTenant.of(ports)
    await attached_tenant.attach(allowedTools=["read", "recall"])
    text = (await attached_tenant.load_prompt()).text
    assert "you can use read;" in text
    assert "bash" not in text[text.index("<workspace>") :]
