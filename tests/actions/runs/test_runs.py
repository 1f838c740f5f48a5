"""A run sees what was there when it began, for ever, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support.stores import advance_clock

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.policy import policies
from carrel.actions.policy.policies import LimitsModel, PolicyModel
from carrel.actions.runs import diff, runs, snapshots
from carrel.actions.runs.runs import RunRequest
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.runs import NOOP_WORKFLOW, Audience, Run, RunStatus, SnapshotLayer
from carrel.core.store.event import EventFilter
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ADA, STRANGER = Actor("acme", "ada"), Actor("globex", "gus")
OTHER = Actor("acme", "ada", workspace="attic")
OWN: Stack = (ADA.scope,)
SOUL, NOTES = Path("SOUL.md"), Path("notes/today.md")
WORK = RunRequest("work")


async def say(ports: Ports, text: str, path: Path = SOUL, stack: Stack = OWN) -> None:
    await files.put(ports, stack, path, text.encode(), ADA)


async def seen(ports: Ports, run: Run) -> dict[str, tuple[int, bytes]]:
    """Everything that a run sees: path to version and bytes."""
    manifest = await snapshots.load_manifest(ports, run)
    contents = {path: await snapshots.read_file(ports, run, path) for path in manifest.files}
    return {path.text: (file.head.version, text) for path, (file, text) in contents.items()}


async def log_of(ports: Ports, run: Run) -> list[str]:
    found = await ports.events.read_after(None, EventFilter(run.tenant, run=run.id))
    assert [event.sequence for event in found] == list(range(1, len(found) + 1))
    return [event.type for event in found]


async def keep_only(ports: Ports, versions: int) -> None:
    limits = LimitsModel(max_versions=versions)
    await policies.put(ports, ADA, PolicyModel(limits=limits))


async def test_a_run_is_recorded_as_it_was_asked_for(ports: Ports) -> None:
    await say(ports, "kind")
    run = await runs.start(ports, ADA, RunRequest("a workflow", mode=Audience.SHARED))
    assert await runs.get(ports, ADA, run.id) == run
    assert (run.scope, run.author, run.workflow) == (ADA.scope, "ada", "a workflow")
    assert (run.mode, run.status, run.snapshot_kept) == (Audience.SHARED, RunStatus.RUNNING, True)
    assert (run.ended_at, run.parent, run.replay_of) == (None, None, None)
    assert await log_of(ports, run) == ["run.started"]
    assert (await runs.start(ports, ADA, WORK)).mode is Audience.MAIN


async def test_a_write_in_a_run_is_invisible_to_it_and_seen_by_the_next(ports: Ports) -> None:
    await say(ports, "before")
    run = await runs.start(ports, ADA, WORK)
    await files.put(ports, OWN, SOUL, b"during", ADA, WriteOptions(run=run.id))
    await files.put(ports, OWN, NOTES, b"new", ADA, WriteOptions(run=run.id))
    after = await runs.start(ports, ADA, WORK)
    assert await seen(ports, run) == {"SOUL.md": (1, b"before")}
    assert await seen(ports, after) == {"SOUL.md": (2, b"during"), "notes/today.md": (1, b"new")}
    assert await log_of(ports, run) == ["run.started", "workspace.updated", "workspace.updated"]
    with pytest.raises(NotFound):
        await snapshots.read_file(ports, run, NOTES)


async def test_frozen_bytes_survive_edits_deletes_recreates_and_pruning(ports: Ports) -> None:
    await keep_only(ports, 2)
    await say(ports, "first")
    await say(ports, "kept", NOTES)
    run = await runs.start(ports, ADA, WORK)
    frozen = await seen(ports, run)
    for number in range(5):
        await say(ports, f"edit {number}")
        await files.delete(ports, OWN, SOUL, ADA)
        await say(ports, f"again {number}")
        assert await seen(ports, run) == frozen
    await files.delete(ports, OWN, NOTES, ADA)
    assert (
        await seen(ports, run)
        == frozen
        == {
            "SOUL.md": (1, b"first"),
            "notes/today.md": (1, b"kept"),
        }
    )
    with pytest.raises(NotFound):
        await files.read_version(ports, OWN, SOUL, 2)


async def test_an_agent_s_run_freezes_every_layer(ports: Ports) -> None:
    template = await templates.create(ports, ADA, "sales", "Sales")
    agent = await agents.create(ports, ADA, NewAgent("marco", "Marco", "sales"))
    above = (Scope("acme", ScopeKind.TEMPLATE, template.id),)
    own = (Scope("acme", ScopeKind.AGENT, agent.id),)
    await say(ports, "of the template", stack=above)
    run = await runs.start(ports, ADA, RunRequest(agent="marco"))
    await say(ports, "newer", stack=above)
    await say(ports, "its own", stack=own)
    assert await seen(ports, run) == {"SOUL.md": (1, b"of the template")}
    assert run.scope == own[0]
    assert [layer.scope.kind for layer in run.snapshot] == ["agent", "template", "defaults"]
    itself = Actor("acme", "key_1", agent=agent.id)
    assert (await runs.start(ports, itself, WORK)).scope == own[0]
    with pytest.raises(NotFound):
        await runs.start(ports, OTHER, RunRequest(agent="marco"))
    with pytest.raises(NotFound):
        await runs.start(ports, ADA, RunRequest(agent="nobody"))


async def test_the_noop_workflow_has_completed_by_the_time_it_is_seen(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    assert run.status is RunStatus.COMPLETED
    assert run.ended_at is not None
    assert await runs.get(ports, ADA, run.id) == run
    assert await log_of(ports, run) == ["run.started", "run.completed"]


async def test_a_child_is_of_its_parent_s_workspace_with_a_snapshot_of_its_own(
    ports: Ports,
) -> None:
    await say(ports, "old", stack=(OTHER.scope,))
    parent = await runs.start(ports, OTHER, RunRequest("parent", mode=Audience.SHARED))
    await say(ports, "new", stack=(OTHER.scope,))
    child = await runs.start(ports, ADA, RunRequest("child", parent=parent.id, mode=Audience.MAIN))
    assert (child.parent, child.scope) == (parent.id, OTHER.scope)
    assert await seen(ports, child) == {"SOUL.md": (2, b"new")}
    assert await seen(ports, parent) == {"SOUL.md": (1, b"old")}
    assert child.mode is Audience.SHARED, "a child may not hear what its parent must not"


async def test_a_child_of_a_shared_run_replays_none_that_heard_more(ports: Ports) -> None:
    await say(ports, "x")
    private = await runs.start(ports, ADA, RunRequest("private"))
    parent = await runs.start(ports, ADA, RunRequest("parent", mode=Audience.SHARED))
    with pytest.raises(ValidationError, match="shared"):
        await runs.start(ports, ADA, RunRequest(parent=parent.id, replay_of=private.id))
    child = await runs.start(ports, ADA, RunRequest(parent=private.id, replay_of=parent.id))
    assert child.mode is Audience.SHARED


async def test_a_child_may_share_its_parent_s_snapshot(ports: Ports) -> None:
    await say(ports, "old")
    parent = await runs.start(ports, ADA, RunRequest("parent", variables={"AGENT_NAME": "Marco"}))
    await say(ports, "new")
    child = await runs.start(ports, ADA, RunRequest(parent=parent.id, share_parent=True))
    assert await seen(ports, child) == await seen(ports, parent) == {"SOUL.md": (1, b"old")}
    assert (child.snapshot, child.variables) == (parent.snapshot, parent.variables)
    assert child.workflow == "parent"


async def test_a_replay_sees_what_the_original_saw_to_the_byte(ports: Ports) -> None:
    await keep_only(ports, 1)
    await say(ports, "as it was")
    variables = {"HUMAN_NAME": "Zoë"}
    original = await runs.start(
        ports, ADA, RunRequest("w", mode=Audience.SHARED, variables=variables)
    )
    await say(ports, "edited")
    await files.delete(ports, OWN, SOUL, ADA)
    again = await runs.start(ports, ADA, RunRequest(replay_of=original.id))
    assert await seen(ports, again) == {"SOUL.md": (1, b"as it was")}
    assert (again.workflow, again.mode, again.variables) == (
        "w",
        Audience.SHARED,
        original.variables,
    )
    assert original.variables["HUMAN_NAME"] == "Zoë"
    assert again.replay_of == original.id
    await runs.update(ports, ADA, original.id, status=RunStatus.COMPLETED, keep_snapshot=False)
    await say(ports, "pruning what only the replay still holds")
    assert await seen(ports, again) == {"SOUL.md": (1, b"as it was")}


async def test_a_run_that_was_let_go_has_nothing_to_show_or_to_share(ports: Ports) -> None:
    await say(ports, "x")
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    gone = await runs.update(ports, ADA, run.id, keep_snapshot=False)
    assert gone == await runs.get(ports, ADA, run.id)
    for stale in (run, gone):
        for reading in (
            snapshots.load_manifest(ports, stale),
            snapshots.read_file(ports, stale, SOUL),
            diff.diff(ports, stale),
            diff.diff_file(ports, stale, SOUL),
        ):
            with pytest.raises(NotFound, match="its snapshot was deleted"):
                await reading
    for asked in (RunRequest(replay_of=run.id), RunRequest(parent=run.id, share_parent=True)):
        with pytest.raises(Conflict, match="its snapshot was deleted"):
            await runs.start(ports, ADA, asked)
    with pytest.raises(Conflict, match="kept again"):
        await runs.update(ports, ADA, run.id, keep_snapshot=True)
    child = await runs.start(ports, ADA, RunRequest(parent=run.id))
    assert await seen(ports, child) == {"SOUL.md": (1, b"x")}


class LetsGo:
    """Runs among which another caller lets go of one just before the next is started."""

    def __init__(self, ports: Ports, victim: str) -> None:
        self._ports, self._victim = ports, victim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ports.runs, name)

    async def start(self, started: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]) -> Any:
        await runs.update(self._ports, ADA, self._victim, keep_snapshot=False)
        return await self._ports.runs.start(started)


async def test_a_snapshot_that_is_let_go_while_it_is_taken_over_is_not_taken(
    ports: Ports,
) -> None:
    await say(ports, "x")
    original = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    torn = replace(ports, runs=LetsGo(ports, original.id))
    with pytest.raises(Conflict, match="its snapshot was deleted"):
        await runs.start(torn, ADA, RunRequest(replay_of=original.id))
    [replay, _] = (await runs.list_runs(ports, ADA)).items
    assert (replay.snapshot_kept, replay.status) == (False, RunStatus.CANCELLED)


@pytest.mark.parametrize(
    "asked",
    [
        RunRequest(),
        RunRequest(mode=Audience.MAIN),
        RunRequest("x" * 257),
        RunRequest("a\n"),
        RunRequest("a\x00b"),
        RunRequest("é"),
        RunRequest(" a"),
        RunRequest("a", share_parent=True),
        RunRequest("a", parent="p", replay_of="o", share_parent=True),
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused(ports: Ports, asked: RunRequest) -> None:
    with pytest.raises(ValidationError):
        await runs.start(ports, ADA, asked)
    assert not (await runs.list_runs(ports, ADA)).items


async def test_a_run_cannot_follow_one_and_belong_to_another(ports: Ports) -> None:
    await agents.create(ports, ADA, NewAgent("marco", "Marco"))
    run = await runs.start(ports, ADA, WORK)
    attic = await runs.start(ports, OTHER, RunRequest("w", mode=Audience.SHARED))
    for asked in (
        RunRequest(parent=run.id, agent="marco"),
        RunRequest(replay_of=run.id, agent="marco"),
        RunRequest(parent=run.id, replay_of=attic.id),
        RunRequest(replay_of=attic.id, mode=Audience.MAIN),
    ):
        with pytest.raises(ValidationError):
            await runs.start(ports, ADA, asked)


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED])
async def test_a_run_ends_once_and_stays_as_it_ended(ports: Ports, status: RunStatus) -> None:
    run = await runs.start(ports, ADA, WORK)
    assert await runs.update(ports, ADA, run.id, status=RunStatus.RUNNING) == run
    ended = await runs.update(ports, ADA, run.id, status=status)
    assert (ended.status, ended.ended_at is not None) == (status, True)
    advance_clock(ports, 1000)
    assert await runs.update(ports, ADA, run.id, status=status) == ended
    for other in {*RunStatus} - {status}:
        with pytest.raises(Conflict):
            await runs.update(ports, ADA, run.id, status=other)
    assert await runs.get(ports, ADA, run.id) == ended
    assert await log_of(ports, run) == ["run.started", f"run.{status}"]


async def test_of_rivals_that_end_a_run_one_wins_and_the_others_are_told(ports: Ports) -> None:
    run = await runs.start(ports, ADA, WORK)
    wanted = [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED] * 4
    outcomes = await asyncio.gather(
        *(runs.update(ports, ADA, run.id, status=status) for status in wanted),
        return_exceptions=True,
    )
    final = await runs.get(ports, ADA, run.id)
    for status, outcome in zip(wanted, outcomes, strict=True):
        assert outcome == final if status is final.status else isinstance(outcome, Conflict)
    assert len(await log_of(ports, run)) == 2


async def test_a_run_under_way_cannot_be_let_go_but_can_be_ended_so(ports: Ports) -> None:
    run = await runs.start(ports, ADA, WORK)
    with pytest.raises(Conflict):
        await runs.update(ports, ADA, run.id, keep_snapshot=False)
    ended = await runs.update(ports, ADA, run.id, status=RunStatus.FAILED, keep_snapshot=False)
    assert (ended.snapshot_kept, ended.snapshot) == (False, ())


async def test_nobody_knows_of_a_run_in_another_tenant_or_beyond_their_own_scope(
    ports: Ports,
) -> None:
    run = await runs.start(ports, ADA, WORK)
    attic = await runs.start(ports, OTHER, WORK)
    for actor, hidden in ((STRANGER, run), (OTHER, run), (Actor("acme", "k", agent="x"), attic)):
        with pytest.raises(NotFound):
            await runs.get(ports, actor, hidden.id)
        with pytest.raises(NotFound):
            await runs.update(ports, actor, hidden.id, status=RunStatus.CANCELLED)
        for asked in (RunRequest(parent=hidden.id), RunRequest(replay_of=hidden.id)):
            with pytest.raises(NotFound):
                await runs.start(ports, actor, asked)
        assert hidden.id not in {each.id for each in (await runs.list_runs(ports, actor)).items}
    for nonsense in ("", "run\x00", "\ud800", "../x", "r" * 200):
        with pytest.raises(NotFound):
            await runs.get(ports, ADA, nonsense)


async def test_runs_are_listed_newest_first_page_by_page(ports: Ports) -> None:
    agent = await agents.create(ports, ADA, NewAgent("marco", "Marco"))
    started = [await runs.start(ports, ADA, WORK) for _ in range(5)]
    mine = await runs.start(ports, ADA, RunRequest(agent="marco"))
    first = await runs.list_runs(ports, ADA, limit=4)
    rest = await runs.list_runs(ports, ADA, limit=4, cursor=first.next or "")
    assert [*first.items, *rest.items] == [mine, *reversed(started)]
    assert rest.next is None
    assert (await runs.list_runs(ports, ADA, agent=agent.id)).items == (mine,)
    with pytest.raises(ValidationError):
        await runs.list_runs(ports, ADA, cursor="\x00")


async def test_a_diff_tells_what_changed_since_and_how(ports: Ports) -> None:
    for path, text in {"a.md": "1\n2\n", "b.md": "b", "c.md": "c", "d.md": "d"}.items():
        await say(ports, text, Path(path))
    run = await runs.start(ports, ADA, WORK)
    assert await diff.diff(ports, run) == ()
    await say(ports, "1\nTWO\n", Path("a.md"))
    await files.delete(ports, OWN, Path("b.md"), ADA)
    await say(ports, "c", Path("c.md"))
    await say(ports, "e", Path("e.md"))
    found = await diff.diff(ports, run)
    assert [(each.path.text, each.kind) for each in found] == [
        ("a.md", "changed"),
        ("b.md", "removed"),
        ("e.md", "added"),
    ]
    versions = [tuple(f and f.head.version for f in (d.before, d.after)) for d in found]
    assert versions == [(1, 2), (1, None), (None, 1)]
    difference, text = await diff.diff_file(ports, run, Path("a.md"))
    assert difference == found[0]
    assert text == "--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n 1\n-2\n+TWO\n"
    assert await diff.diff_file(ports, run, Path("c.md")) == (None, "")
    _, removed = await diff.diff_file(ports, run, Path("b.md"))
    assert "-b" in removed
    with pytest.raises(NotFound):
        await diff.diff_file(ports, run, Path("never.md"))


async def test_the_diff_of_an_agent_that_is_gone_is_against_the_layers_it_had(
    ports: Ports,
) -> None:
    agent = await agents.create(ports, ADA, NewAgent("marco", "Marco"))
    own = (Scope("acme", ScopeKind.AGENT, agent.id),)
    await say(ports, "x", stack=own)
    run = await runs.start(ports, ADA, RunRequest(agent="marco"))
    await agents.delete(ports, ADA, "marco")
    assert await diff.diff(ports, run) == ()
    assert await seen(ports, run) == {"SOUL.md": (1, b"x")}
