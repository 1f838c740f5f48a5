"""Attached workspaces in an agent's prompt, and in a run's for ever as they were."""

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
from carrel.actions.policy.policies import LimitsModel, PolicyModel
from carrel.actions.prompt import lint, prompts
from carrel.actions.runs import diff, runs, snapshots
from carrel.actions.runs.runs import RunRequest
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


class Room:
    """An office whose agent shares a workspace that it may write, and one that it may not."""

    def __init__(self, office: OverlayTenant) -> None:
        self.office, self.ports, self.owner = office, office.ports, office.owner

    @classmethod
    async def of(cls, ports: Ports) -> Room:
        _, owner = await create_tenant(ports)
        room = cls(await OverlayTenant(ports, owner).open())
        room.sandbox = await sandboxes.create(ports, owner, {"name": "s"})
        room.notes = await workspaces.create(ports, owner, {"name": "n", "description": "Ours."})
        room.docs = await workspaces.create(ports, owner, {"name": "d"})
        await room.remember(room.notes, "we like green")
        await room.remember(room.docs, "page one")
        await room.attach()
        return room

    sandbox: Record
    notes: Record
    docs: Record

    async def attach(self, **more: Any) -> None:
        attached = [
            {"name": "notes", "workspaceId": self.notes.id},
            {"name": "docs", "workspaceId": self.docs.id, "sandbox": None},
        ]
        config = {"sandbox": self.sandbox.id, "workspaces": attached, **more}
        await agents.patch(self.ports, self.owner, "marco", {"config": config})

    async def remember(self, workspace: Record, text: str, path: Path = MEMORY) -> None:
        stack = await stacks.workspace_stack(self.ports, self.owner, workspace.id)
        await files.put(self.ports, stack, path, text.encode(), self.owner)

    async def shown(self, mode: Audience = Audience.MAIN) -> prompts.AssembledPrompt:
        return await prompts.load_agent_prompt(self.ports, self.owner, "marco", mode)

    async def key(self, mode: Audience = Audience.MAIN) -> str:
        return (await prompts.load_prompt_request(self.ports, self.owner, "marco", mode)).key


async def test_a_prompt_holds_what_attached_workspaces_remember(ports: Ports) -> None:
    room = await Room.of(ports)
    shown = await room.shown()
    assert "# MEMORY — notes\nwe like green" in shown.text
    assert "# MEMORY — docs\npage one" in shown.text
    assert "- notes (default) [fs-" in shown.text
    assert "]: Ours." in shown.text
    assert "- docs (read-only) [fs-" in shown.text
    block = next(each for each in shown.blocks if each.path == f"{room.notes.id}/MEMORY.md")
    assert (block.source, block.version) == ("workspace", 1)
    others = (await room.shown(Audience.SHARED)).text
    assert "- docs (read-only) [fs-" in others
    assert "green" not in others


async def test_a_memory_that_is_a_link_says_nothing(ports: Ports) -> None:
    room = await Room.of(ports)
    stack = await stacks.workspace_stack(ports, room.owner, room.notes.id)
    link = WriteOptions(type=LINK_TYPE)
    await files.put(ports, stack, MEMORY, b"/etc/passwd", room.owner, link)
    shown = await room.shown()
    assert "/etc/passwd" not in shown.text
    [block] = [one for one in shown.blocks if one.name == "MEMORY — notes"]
    assert (block.chars, block.reason) == (0, "it is a symbolic link; links are not followed")


async def test_a_shared_memory_that_is_cut_is_found_by_lint(ports: Ports) -> None:
    room = await Room.of(ports)
    place = f"{room.notes.id}/MEMORY.md"
    assert place not in {flaw.path for flaw in await lint.lint_agent(ports, room.owner, "marco")}
    await room.remember(room.notes, "x" * 12_001)
    found = {flaw.path: flaw.rule for flaw in await lint.lint_agent(ports, room.owner, "marco")}
    assert found[place] is LintRule.TRUNCATED


async def test_the_key_changes_with_each_of_them_and_with_nothing_else(ports: Ports) -> None:
    room = await Room.of(ports)
    seen = [(await room.key(), await room.key(Audience.SHARED))]

    async def changed(main: bool, shared: bool) -> None:
        now = (await room.key(), await room.key(Audience.SHARED))
        assert (now[0] != seen[-1][0], now[1] != seen[-1][1]) == (main, shared)
        seen.append(now)

    await room.remember(room.docs, "page two")
    await changed(True, False)
    await workspaces.patch(ports, room.owner, room.notes.id, {"description": "Yours."})
    await changed(True, True)
    await workspaces.patch(ports, room.owner, room.notes.id, {"name": "nobody shows this"})
    await changed(False, False)
    quiet = {"config": {"harness": {"enabled": False}}}
    await workspaces.patch(ports, room.owner, room.docs.id, quiet)
    await changed(True, True)
    await room.attach(sandbox=None)
    await changed(True, True)
    assert len({main for main, _ in seen}) == 5


async def test_a_reference_to_what_is_gone_is_told_by_name(ports: Ports) -> None:
    room = await Room.of(ports)
    await workspaces.delete(ports, room.owner, room.docs.id)
    told = f'Referenced workspace not found: {room.docs.id} \\(as "docs"\\)'
    with pytest.raises(NotFound, match=told):
        await room.shown()
    with pytest.raises(NotFound, match=told):
        await runs.start(ports, room.owner, RunRequest(agent="marco"))


async def test_the_prompt_of_a_run_stays_whatever_becomes_of_its_workspaces(
    anywhere: Ports,
) -> None:
    room = await Room.of(anywhere)
    ports, owner = room.ports, room.owner
    shared = LimitsModel(max_versions=1, max_bytes=None)
    await policies.put(ports, owner, PolicyModel(shared_limits=shared))
    started = {
        mode: await runs.start(ports, owner, RunRequest(agent="marco", mode=mode))
        for mode in Audience
    }
    before = {mode: await prompts.load_run_prompt(ports, run) for mode, run in started.items()}
    assert before[Audience.MAIN] == await room.shown()
    assert before[Audience.SHARED] == await room.shown(Audience.SHARED)
    assert "we like green" in before[Audience.MAIN].text
    for n in range(3):
        await room.remember(room.notes, f"we like red {n}")
    await workspaces.patch(ports, owner, room.notes.id, {"description": "Theirs."})
    await sandboxes.delete(ports, owner, room.sandbox.id)
    await agents.patch(ports, owner, "marco", {"config": {}})
    await workspaces.delete(ports, owner, room.docs.id)
    await workspaces.delete(ports, owner, room.notes.id)
    for mode, run in started.items():
        assert (
            await prompts.load_run_prompt(ports, await runs.get(ports, owner, run.id))
            == before[mode]
        )
        again = await runs.start(ports, owner, RunRequest(replay_of=run.id))
        assert await prompts.load_run_prompt(ports, again) == before[mode]
        child = await runs.start(ports, owner, RunRequest(parent=run.id, share_parent=True))
        assert await prompts.load_run_prompt(ports, child) == before[mode]
    await agents.delete(ports, owner, "marco")
    for mode, run in started.items():
        assert await prompts.load_run_prompt(ports, run) == before[mode]


async def test_the_files_of_a_run_are_the_agents_own_whatever_is_attached(ports: Ports) -> None:
    room = await Room.of(ports)
    await room.remember(room.notes, "theirs", Path("theirs.md"))
    run = await runs.start(ports, room.owner, RunRequest(agent="marco"))
    assert len(run.attached_layers) == 2
    seen = await snapshots.load_manifest(ports, run)
    assert not {MEMORY, Path("theirs.md")} & set(seen.files)
    with pytest.raises(NotFound):
        await snapshots.read_file(ports, run, Path("theirs.md"))
    assert await diff.diff(ports, run) == ()
    await agents.delete(ports, room.owner, "marco")
    assert Path("theirs.md") not in {each.path for each in await diff.diff(ports, run)}


async def test_a_run_that_began_while_a_workspace_went_is_of_one_moment(ports: Ports) -> None:
    """It tells of the workspace and shows what was in it, or there is no run at all."""
    room = await Room.of(ports)
    outcomes = set()
    for turn in range(40):
        going = start_after_yields(turn, workspaces.delete(ports, room.owner, room.notes.id))
        starting = runs.start(ports, room.owner, RunRequest(agent="marco"))
        (begun, lost) = await race(starting, going)
        outcomes.add(bool(lost))
        if lost:
            assert str(lost[0]).startswith("Referenced workspace not found")
            assert not [run for run in await running(room) if run.status is RunStatus.RUNNING]
        else:
            text = (await prompts.load_run_prompt(ports, begun[0])).text
            assert "# MEMORY — notes\nwe like green" in text
            await runs.update(ports, room.owner, begun[0].id, status=RunStatus.COMPLETED)
        room.notes = await workspaces.create(ports, room.owner, {"name": "n"})
        await room.remember(room.notes, "we like green")
        await room.attach()
    assert outcomes == {True, False}


async def running(room: Room) -> tuple[Run, ...]:
    return (await runs.list_runs(room.ports, room.owner)).items


async def test_nobody_can_say_for_a_run_what_is_attached(ports: Ports) -> None:
    room = await Room.of(ports)
    for name in ("prompt:attached:000", "prompt:tools"):
        with pytest.raises(ValidationError, match=name):
            await runs.start(ports, room.owner, RunRequest(agent="marco", variables={name: "x"}))


async def test_an_agent_is_not_told_of_tools_that_it_may_not_use(ports: Ports) -> None:
    room = await Room.of(ports)
    await room.attach(allowedTools=["read", "recall"])
    text = (await room.shown()).text
    assert "you can use read;" in text
    assert "bash" not in text[text.index("<workspace>") :]
