"""A run always reads the files from its start, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.support.stores import advance_clock

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import LimitsModel, PolicyModel
from carrel.actions.runs import diff, runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.runs import NOOP_WORKFLOW, Audience, Run, RunStatus
from carrel.core.store.event import EventFilter
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ADA, STRANGER = Actor("acme", "ada"), Actor("globex", "gus")
OTHER = Actor("acme", "ada", workspace="other")
OWN: Stack = (ADA.scope,)
SOUL, NOTES = Path("SOUL.md"), Path("notes/today.md")
WORK = RunRequest("work")


async def write(ports: Ports, text: str, path: Path = SOUL, stack: Stack = OWN) -> None:
    await files.put(ports, stack, path, text.encode(), ADA)


async def read_all(ports: Ports, run: Run) -> dict[str, tuple[int, bytes]]:
    """Every file that a run reads: path to version and content."""
    manifest = await snapshots.load_manifest(ports, run)
    contents = {path: await snapshots.read_file(ports, run, path) for path in manifest.files}
    return {path.text: (file.head.version, text) for path, (file, text) in contents.items()}


async def event_types(ports: Ports, run: Run) -> list[str]:
    events = await ports.events.read_after(None, EventFilter(run.tenant, run=run.id))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    return [event.type for event in events]


async def keep_only(ports: Ports, versions: int) -> None:
    limits = LimitsModel(max_versions=versions)
    await policies.put(ports, ADA, PolicyModel(limits=limits))


async def test_a_run_is_recorded_as_requested(ports: Ports) -> None:
    await write(ports, "kind")
    run = await runs.start(ports, ADA, RunRequest("a workflow", mode=Audience.SHARED))
    assert await runs.get(ports, ADA, run.id) == run
    assert (run.scope, run.author, run.workflow) == (ADA.scope, "ada", "a workflow")
    assert (run.mode, run.status, run.snapshot_kept) == (Audience.SHARED, RunStatus.RUNNING, True)
    assert (run.ended_at, run.parent, run.replay_of) == (None, None, None)
    assert await event_types(ports, run) == ["run.started"]
    assert (await runs.start(ports, ADA, WORK)).mode is Audience.MAIN


async def test_a_write_in_a_run_is_invisible_to_it_and_visible_to_the_next(ports: Ports) -> None:
    await write(ports, "before")
    run = await runs.start(ports, ADA, WORK)
    await files.put(ports, OWN, SOUL, b"during", ADA, WriteOptions(run=run.id))
    await files.put(ports, OWN, NOTES, b"new", ADA, WriteOptions(run=run.id))
    after = await runs.start(ports, ADA, WORK)
    assert await read_all(ports, run) == {"SOUL.md": (1, b"before")}
    assert await read_all(ports, after) == {
        "SOUL.md": (2, b"during"),
        "notes/today.md": (1, b"new"),
    }
    assert await event_types(ports, run) == [
        "run.started",
        "workspace.updated",
        "workspace.updated",
    ]
    with pytest.raises(NotFound):
        await snapshots.read_file(ports, run, NOTES)


async def test_a_snapshot_survives_edits_deletions_recreation_and_pruning(ports: Ports) -> None:
    await keep_only(ports, 2)
    await write(ports, "first")
    await write(ports, "kept", NOTES)
    run = await runs.start(ports, ADA, WORK)
    frozen = await read_all(ports, run)
    for number in range(5):
        await write(ports, f"edit {number}")
        await files.delete(ports, OWN, SOUL, ADA)
        await write(ports, f"again {number}")
        assert await read_all(ports, run) == frozen
    await files.delete(ports, OWN, NOTES, ADA)
    assert (
        await read_all(ports, run)
        == frozen
        == {
            "SOUL.md": (1, b"first"),
            "notes/today.md": (1, b"kept"),
        }
    )
    with pytest.raises(NotFound):
        await files.read_version(ports, OWN, SOUL, 2)


async def test_an_agents_run_freezes_every_layer(ports: Ports) -> None:
    template = await templates.create(ports, ADA, "sales", "Sales")
    agent = await agents.create(ports, ADA, NewAgent("marco", "Marco", "sales"))
    above = (Scope("acme", ScopeKind.TEMPLATE, template.id),)
    own = (Scope("acme", ScopeKind.AGENT, agent.id),)
    await write(ports, "of the template", stack=above)
    run = await runs.start(ports, ADA, RunRequest(agent="marco"))
    await write(ports, "newer", stack=above)
    await write(ports, "its own", stack=own)
    assert await read_all(ports, run) == {"SOUL.md": (1, b"of the template")}
    assert run.scope == own[0]
    assert [layer.scope.kind for layer in run.snapshot] == ["agent", "template", "defaults"]
    itself = Actor("acme", "key_1", agent=agent.id)
    assert (await runs.start(ports, itself, WORK)).scope == own[0]
    with pytest.raises(NotFound):
        await runs.start(ports, OTHER, RunRequest(agent="marco"))
    with pytest.raises(NotFound):
        await runs.start(ports, ADA, RunRequest(agent="missing"))


async def test_the_noop_workflow_is_completed_when_it_is_returned(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    assert run.status is RunStatus.COMPLETED
    assert run.ended_at is not None
    assert await runs.get(ports, ADA, run.id) == run
    assert await event_types(ports, run) == ["run.started", "run.completed"]


async def test_a_child_run_has_its_parents_workspace_and_its_own_snapshot(
    ports: Ports,
) -> None:
    await write(ports, "old", stack=(OTHER.scope,))
    parent = await runs.start(ports, OTHER, RunRequest("parent", mode=Audience.SHARED))
    await write(ports, "new", stack=(OTHER.scope,))
    child = await runs.start(ports, ADA, RunRequest("child", parent=parent.id, mode=Audience.MAIN))
    assert (child.parent, child.scope) == (parent.id, OTHER.scope)
    assert await read_all(ports, child) == {"SOUL.md": (2, b"new")}
    assert await read_all(ports, parent) == {"SOUL.md": (1, b"old")}
    assert child.mode is Audience.SHARED, "a child has at most its parent's audience"


async def test_a_child_of_a_shared_run_cannot_replay_a_main_run(ports: Ports) -> None:
    await write(ports, "x")
    private = await runs.start(ports, ADA, RunRequest("private"))
    parent = await runs.start(ports, ADA, RunRequest("parent", mode=Audience.SHARED))
    with pytest.raises(ValidationError, match="shared"):
        await runs.start(ports, ADA, RunRequest(parent=parent.id, replay_of=private.id))
    child = await runs.start(ports, ADA, RunRequest(parent=private.id, replay_of=parent.id))
    assert child.mode is Audience.SHARED


async def test_a_child_may_share_its_parents_snapshot(ports: Ports) -> None:
    await write(ports, "old")
    parent = await runs.start(ports, ADA, RunRequest("parent", variables={"AGENT_NAME": "Marco"}))
    await write(ports, "new")
    child = await runs.start(ports, ADA, RunRequest(parent=parent.id, share_parent=True))
    assert await read_all(ports, child) == await read_all(ports, parent) == {"SOUL.md": (1, b"old")}
    assert (child.snapshot, child.variables) == (parent.snapshot, parent.variables)
    assert child.workflow == "parent"


async def test_a_replay_reads_the_same_content_as_the_original(ports: Ports) -> None:
    await keep_only(ports, 1)
    await write(ports, "as it was")
    variables = {"HUMAN_NAME": "Zoë"}
    original = await runs.start(
        ports, ADA, RunRequest("w", mode=Audience.SHARED, variables=variables)
    )
    await write(ports, "edited")
    await files.delete(ports, OWN, SOUL, ADA)
    again = await runs.start(ports, ADA, RunRequest(replay_of=original.id))
    assert await read_all(ports, again) == {"SOUL.md": (1, b"as it was")}
    assert (again.workflow, again.mode, again.variables) == (
        "w",
        Audience.SHARED,
        original.variables,
    )
    assert original.variables["HUMAN_NAME"] == "Zoë"
    assert again.replay_of == original.id
    await runs.update(ports, ADA, original.id, status=RunStatus.COMPLETED, keep_snapshot=False)
    await write(ports, "pruning what only the replay still holds")
    assert await read_all(ports, again) == {"SOUL.md": (1, b"as it was")}


async def test_a_released_run_cannot_be_read_or_shared(ports: Ports) -> None:
    await write(ports, "x")
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    released = await runs.update(ports, ADA, run.id, keep_snapshot=False)
    assert released == await runs.get(ports, ADA, run.id)
    for stale in (run, released):
        for request in (
            snapshots.load_manifest(ports, stale),
            snapshots.read_file(ports, stale, SOUL),
            diff.diff(ports, stale),
            diff.diff_file(ports, stale, SOUL),
        ):
            with pytest.raises(NotFound, match="its snapshot was deleted"):
                await request
    for run_request in (
        RunRequest(replay_of=run.id),
        RunRequest(parent=run.id, share_parent=True),
    ):
        with pytest.raises(Conflict, match="its snapshot was deleted"):
            await runs.start(ports, ADA, run_request)
    with pytest.raises(Conflict, match="kept again"):
        await runs.update(ports, ADA, run.id, keep_snapshot=True)
    child = await runs.start(ports, ADA, RunRequest(parent=run.id))
    assert await read_all(ports, child) == {"SOUL.md": (1, b"x")}


class ReleasingRuns:
    """Runs where another caller releases a run just before the next start."""

    def __init__(self, ports: Ports, released: str) -> None:
        self._ports, self._released = ports, released

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ports.runs, name)

    async def start(self, *arguments: Any) -> Any:
        await runs.update(self._ports, ADA, self._released, keep_snapshot=False)
        return await self._ports.runs.start(*arguments)


async def test_a_replay_of_a_run_released_at_the_same_time_is_refused(
    ports: Ports,
) -> None:
    await write(ports, "x")
    original = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    racing = replace(ports, runs=ReleasingRuns(ports, original.id))
    with pytest.raises(Conflict, match="its snapshot was deleted"):
        await runs.start(racing, ADA, RunRequest(replay_of=original.id))
    [replay, _] = (await runs.list_runs(ports, ADA)).items
    assert (replay.snapshot_kept, replay.status) == (False, RunStatus.CANCELLED)


@pytest.mark.parametrize(
    "run_request",
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
async def test_an_invalid_request_is_refused(ports: Ports, run_request: RunRequest) -> None:
    with pytest.raises(ValidationError):
        await runs.start(ports, ADA, run_request)
    assert not (await runs.list_runs(ports, ADA)).items


async def test_a_run_cannot_combine_a_parent_or_replay_with_another_workspace(ports: Ports) -> None:
    await agents.create(ports, ADA, NewAgent("marco", "Marco"))
    run = await runs.start(ports, ADA, WORK)
    other = await runs.start(ports, OTHER, RunRequest("w", mode=Audience.SHARED))
    for request in (
        RunRequest(parent=run.id, agent="marco"),
        RunRequest(replay_of=run.id, agent="marco"),
        RunRequest(parent=run.id, replay_of=other.id),
        RunRequest(replay_of=other.id, mode=Audience.MAIN),
    ):
        with pytest.raises(ValidationError):
            await runs.start(ports, ADA, request)


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED])
async def test_a_run_ends_once_and_keeps_its_status(ports: Ports, status: RunStatus) -> None:
    run = await runs.start(ports, ADA, WORK)
    assert await runs.update(ports, ADA, run.id, status=RunStatus.RUNNING) == run
    ended = await runs.update(ports, ADA, run.id, status=status)
    assert (ended.status, ended.ended_at is not None) == (status, True)
    advance_clock(ports, 1000)
    assert await runs.update(ports, ADA, run.id, status=status) == ended
    for other in {*RunStatus} - {status, RunStatus.ABANDONED}:
        with pytest.raises(Conflict):
            await runs.update(ports, ADA, run.id, status=other)
    assert await runs.get(ports, ADA, run.id) == ended
    assert await event_types(ports, run) == ["run.started", f"run.{status}"]


async def test_of_concurrent_updates_that_end_a_run_one_wins_and_the_others_conflict(
    ports: Ports,
) -> None:
    run = await runs.start(ports, ADA, WORK)
    requested = [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED] * 4
    outcomes = await asyncio.gather(
        *(runs.update(ports, ADA, run.id, status=status) for status in requested),
        return_exceptions=True,
    )
    final = await runs.get(ports, ADA, run.id)
    for status, outcome in zip(requested, outcomes, strict=True):
        assert outcome == final if status is final.status else isinstance(outcome, Conflict)
    assert len(await event_types(ports, run)) == 2


async def test_a_running_run_cannot_be_released_unless_it_ends(ports: Ports) -> None:
    run = await runs.start(ports, ADA, WORK)
    with pytest.raises(Conflict):
        await runs.update(ports, ADA, run.id, keep_snapshot=False)
    ended = await runs.update(ports, ADA, run.id, status=RunStatus.FAILED, keep_snapshot=False)
    assert (ended.snapshot_kept, ended.snapshot) == (False, ())


async def test_runs_of_another_tenant_or_scope_are_not_found(
    ports: Ports,
) -> None:
    run = await runs.start(ports, ADA, WORK)
    other = await runs.start(ports, OTHER, WORK)
    for actor, hidden in ((STRANGER, run), (OTHER, run), (Actor("acme", "k", agent="x"), other)):
        with pytest.raises(NotFound):
            await runs.get(ports, actor, hidden.id)
        with pytest.raises(NotFound):
            await runs.update(ports, actor, hidden.id, status=RunStatus.CANCELLED)
        for request in (RunRequest(parent=hidden.id), RunRequest(replay_of=hidden.id)):
            with pytest.raises(NotFound):
                await runs.start(ports, actor, request)
        assert hidden.id not in {item.id for item in (await runs.list_runs(ports, actor)).items}
    for invalid in ("", "run\x00", "\ud800", "../x", "r" * 200):
        with pytest.raises(NotFound):
            await runs.get(ports, ADA, invalid)


async def test_runs_are_listed_newest_first_in_pages(ports: Ports) -> None:
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


async def test_a_diff_lists_the_changes_since_the_run(ports: Ports) -> None:
    for path, text in {"a.md": "1\n2\n", "b.md": "b", "c.md": "c", "d.md": "d"}.items():
        await write(ports, text, Path(path))
    run = await runs.start(ports, ADA, WORK)
    assert await diff.diff(ports, run) == ()
    await write(ports, "1\nTWO\n", Path("a.md"))
    await files.delete(ports, OWN, Path("b.md"), ADA)
    await write(ports, "c", Path("c.md"))
    await write(ports, "e", Path("e.md"))
    changes = await diff.diff(ports, run)
    assert [(change.path.text, change.kind) for change in changes] == [
        ("a.md", "changed"),
        ("b.md", "removed"),
        ("e.md", "added"),
    ]
    versions = [tuple(f and f.head.version for f in (d.before, d.after)) for d in changes]
    assert versions == [(1, 2), (1, None), (None, 1)]
    difference, text = await diff.diff_file(ports, run, Path("a.md"))
    assert difference == changes[0]
    assert text == "--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n 1\n-2\n+TWO\n"
    assert await diff.diff_file(ports, run, Path("c.md")) == (None, "")
    _, removed = await diff.diff_file(ports, run, Path("b.md"))
    assert "-b" in removed
    with pytest.raises(NotFound):
        await diff.diff_file(ports, run, Path("never.md"))
