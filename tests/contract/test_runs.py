"""Contract of RunStore: layers frozen at one moment, and released once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import (
    ACME,
    AGENT,
    DEFAULTS,
    FOREIGN_AGENT,
    GLOBEX,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    commit,
    list_events,
    new_run,
    put_text,
    read_texts,
    start_run,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path
from carrel.core.runs import Audience, Run, RunFilter, RunStatus, SnapshotLayer
from carrel.core.store.event import RUN_ENDED_BY_STATUS, RUN_STARTED

pytestmark = pytest.mark.anyio


async def test_a_run_is_stored_with_all_its_fields(ports: Ports) -> None:
    requested = Run(
        *("run_2", ACME, AGENT, "daily", Audience.SHARED, RunStatus.RUNNING, "ada", NOW),
        parent="run_1",
        replay_of="run_0",
        variables={"HUMAN_NAME": "Ada — “x”", "empty": ""},
    )
    await put_text(ports, "kind")

    [started] = await ports.runs.start([(requested, [AGENT, TEMPLATE, SnapshotLayer(DEFAULTS, 0)])])

    layers = (SnapshotLayer(AGENT, 1), SnapshotLayer(TEMPLATE, 0), SnapshotLayer(DEFAULTS, 0))
    assert started == replace(requested, snapshot=layers)
    assert await ports.runs.get(ACME, ["run_2"]) == (started,)
    assert await ports.runs.list(ACME) == (started,)


async def test_runs_are_read_by_id_in_order_and_only_by_their_tenant(ports: Ports) -> None:
    ours = await start_run(ports, "run_1")
    [theirs] = await ports.runs.start([(new_run("run_2", FOREIGN_AGENT), [FOREIGN_AGENT])])

    assert await ports.runs.get(ACME, ["run_3", "run_2", "run_1", "run_1"]) == (
        *(None, None),
        *(ours, ours),
    )
    assert await ports.runs.get(GLOBEX, ["run_2"]) == (theirs,)
    assert await ports.runs.get(ACME, []) == ()
    assert await ports.runs.start([]) == ()


async def test_a_scope_is_frozen_at_its_revision_and_a_layer_as_it_is(ports: Ports) -> None:
    for n in range(3):
        await put_text(ports, f"text {n}")
    await put_text(ports, "shared", TEMPLATE)

    first = await start_run(ports, "run_1", AGENT, TEMPLATE)
    await put_text(ports, "later")
    second = await start_run(ports, "run_2", *first.snapshot)
    third = await start_run(ports, "run_3", SnapshotLayer(AGENT, 2), TEMPLATE)

    assert (
        first.snapshot == second.snapshot == (SnapshotLayer(AGENT, 3), SnapshotLayer(TEMPLATE, 1))
    )
    assert third.snapshot == (SnapshotLayer(AGENT, 2), SnapshotLayer(TEMPLATE, 1))
    assert await read_texts(ports, second.snapshot[0]) == {"SOUL.md": "text 2"}
    assert await read_texts(ports, third.snapshot[0]) == {"SOUL.md": "text 1"}


async def test_several_runs_start_in_one_call(ports: Ports) -> None:
    await put_text(ports, "kind")
    requested = [(new_run(f"run_{n}"), [AGENT] if n % 2 else [TEMPLATE, AGENT]) for n in range(4)]

    started = await ports.runs.start(requested)

    assert [item.id for item in started] == ["run_0", "run_1", "run_2", "run_3"]
    assert [len(item.snapshot) for item in started] == [2, 1, 2, 1]
    assert await ports.runs.get(ACME, [item.id for item in started]) == started


async def test_a_run_never_sees_half_of_a_commit(ports: Ports) -> None:
    async def writer() -> None:
        for n in range(40):
            writes = [await write(ports, str(n), scope) for scope in (AGENT, TEMPLATE, DEFAULTS)]
            await ports.trees.commit([commit(*writes)])

    async def starter(writing: asyncio.Task[None]) -> list[Run]:
        started = [await start_run(ports, "run_first", AGENT, TEMPLATE, DEFAULTS)]
        while not writing.done():
            await asyncio.sleep(0)
            name = f"run_{len(started)}"
            started.append(await start_run(ports, name, DEFAULTS, AGENT, TEMPLATE))
        return started

    writing = asyncio.create_task(writer())
    started = await starter(writing)
    await writing

    for item in started:
        assert len({layer.revision for layer in item.snapshot}) == 1
        contents = [await read_texts(ports, layer) for layer in item.snapshot]
        assert contents[0] == contents[1] == contents[2]
    assert len({item.snapshot[0].revision for item in started}) > 1


async def test_a_runs_snapshot_does_not_change_with_the_workspace(ports: Ports) -> None:
    await put_text(ports, "kind")
    await put_text(ports, "strict", path=RULES)
    first = await start_run(ports, "run_1")

    await put_text(ports, "unkind")
    await put_text(ports, None, path=RULES)
    await put_text(ports, "new", path=Path("new.md"))
    second = await start_run(ports, "run_2")

    assert await read_texts(ports, first.snapshot[0]) == {
        "SOUL.md": "kind",
        "GUARDRAILS.md": "strict",
    }
    assert await read_texts(ports, second.snapshot[0]) == {"SOUL.md": "unkind", "new.md": "new"}


async def test_the_newest_run_of_each_scope_is_returned_even_if_released(
    ports: Ports,
) -> None:
    names = [f"run_{n}" for n in "0123456789abcdef"]
    await ports.runs.start([(new_run(name), [AGENT]) for name in reversed(names)])
    last = await start_run(ports, "run_g", AGENT, TEMPLATE)
    other = (await ports.runs.start([(new_run("run_3x", TEMPLATE), [TEMPLATE])]))[0]
    [theirs] = await ports.runs.start([(new_run("run_z", FOREIGN_AGENT), [FOREIGN_AGENT])])

    scopes = [TEMPLATE, AGENT, DEFAULTS, FOREIGN_AGENT, AGENT]
    assert await ports.runs.newest_by_scope(ACME, scopes) == (other, last, None, None, last)
    assert await ports.runs.newest_by_scope(GLOBEX, [FOREIGN_AGENT, AGENT]) == (theirs, None)
    assert await ports.runs.newest_by_scope(ACME, []) == ()

    released = replace(
        last, status=RunStatus.COMPLETED, ended_at=NOW, snapshot_kept=False, snapshot=()
    )
    assert await ports.runs.update(released, last)
    assert await ports.runs.newest_by_scope(ACME, [AGENT]) == (released,)


async def test_runs_are_listed_newest_first_in_pages(ports: Ports) -> None:
    names = [f"run_{n}" for n in "0123456789abcdef"]
    await ports.runs.start([(new_run(name), [AGENT, TEMPLATE]) for name in names])
    await ports.runs.start([(new_run("run_5x", FOREIGN_AGENT), [FOREIGN_AGENT])])
    expected = names[::-1]

    assert [item.id for item in await ports.runs.list(ACME)] == expected
    assert [item.id for item in await ports.runs.list(ACME, limit=3)] == expected[:3]
    page = await ports.runs.list(ACME, before=expected[2], limit=4)
    assert [item.id for item in page] == expected[3:7]
    assert page[0].snapshot == (SnapshotLayer(AGENT, 0), SnapshotLayer(TEMPLATE, 0))
    assert await ports.runs.list(ACME, before="run_0") == ()


async def test_runs_are_listed_by_their_workspace(ports: Ports) -> None:
    await ports.runs.start([(new_run("run_1"), [AGENT, TEMPLATE])])
    await ports.runs.start([(new_run("run_2", TEMPLATE), [TEMPLATE, AGENT])])
    await ports.runs.start([(new_run("run_3"), [TEMPLATE])])

    assert [item.id for item in await ports.runs.list(ACME, RunFilter(AGENT))] == ["run_3", "run_1"]
    assert [item.id for item in await ports.runs.list(ACME, RunFilter(TEMPLATE))] == ["run_2"]
    assert await ports.runs.list(ACME, RunFilter(DEFAULTS)) == ()


async def test_an_update_is_stored_only_if_the_run_is_unchanged(ports: Ports) -> None:
    before = await start_run(ports, "run_1")
    done = replace(before, status=RunStatus.COMPLETED, ended_at=NOW + 9)

    assert await ports.runs.update(done, before)
    assert await ports.runs.get(ACME, ["run_1"]) == (done,)
    assert not await ports.runs.update(
        replace(before, status=RunStatus.FAILED, ended_at=NOW), before
    )
    assert await ports.runs.get(ACME, ["run_1"]) == (done,)


async def test_a_run_that_is_missing_or_of_another_tenant_cannot_be_updated(ports: Ports) -> None:
    before = await start_run(ports, "run_1")
    foreign = replace(before, tenant=GLOBEX, scope=FOREIGN_AGENT)

    assert not await ports.runs.update(
        replace(new_run("run_2"), snapshot_kept=False), new_run("run_2")
    )
    assert not await ports.runs.update(replace(foreign, snapshot_kept=False), foreign)
    assert await ports.runs.get(ACME, ["run_1"]) == (before,)


async def test_of_many_updates_that_end_a_run_exactly_one_succeeds(ports: Ports) -> None:
    before = await start_run(ports, "run_1")
    ends = [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.COMPLETED] * 8

    answers = await asyncio.gather(
        *[ports.runs.update(replace(before, status=end, ended_at=NOW), before) for end in ends]
    )

    assert answers.count(True) == 1
    ended = RUN_ENDED_BY_STATUS[ends[answers.index(True)]]
    assert [event.type for event in await list_events(ports, run="run_1")] == [RUN_STARTED, ended]


async def test_releasing_a_run_drops_its_snapshot_and_nothing_else(ports: Ports) -> None:
    before = await start_run(ports, "run_1", AGENT, TEMPLATE)
    other = await start_run(ports, "run_2", AGENT, TEMPLATE)

    assert await ports.runs.update(replace(before, snapshot_kept=False), before)

    assert await ports.runs.get(ACME, ["run_1", "run_2"]) == (
        replace(before, snapshot_kept=False, snapshot=()),
        other,
    )
    assert [event.type for event in await list_events(ports, run="run_1")] == [RUN_STARTED]


async def test_releasing_an_ended_run_does_not_end_it_again(ports: Ports) -> None:
    before = await start_run(ports, "run_1")
    done = replace(before, status=RunStatus.COMPLETED, ended_at=NOW + 1)
    assert await ports.runs.update(done, before)

    assert await ports.runs.update(replace(done, snapshot_kept=False), done)

    emitted = [event.type for event in await list_events(ports, run="run_1")]
    assert emitted == [RUN_STARTED, "run.completed"]


async def test_a_run_can_end_and_be_released_in_one_update(ports: Ports) -> None:
    before = await start_run(ports, "run_1")
    done = replace(before, status=RunStatus.FAILED, ended_at=NOW + 1, snapshot_kept=False)

    assert await ports.runs.update(done, before)
    assert await ports.runs.get(ACME, ["run_1"]) == (replace(done, snapshot=()),)


async def test_the_start_and_the_end_of_a_run_are_events(ports: Ports) -> None:
    for status in (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED):
        before = await start_run(ports, f"run_{status}")
        await ports.runs.update(replace(before, status=status, ended_at=NOW + 9), before)

        started, ended = await list_events(ports, run=before.id)

        assert (started.type, ended.type) == (RUN_STARTED, f"run.{status}")
        assert (started.at, ended.at) == (NOW, NOW + 9)
        assert (started.sequence, ended.sequence) == (1, 2)
        for event in (started, ended):
            assert (event.tenant, event.scope, event.run) == (ACME, AGENT, before.id)
        fields = {"runId": before.id, "workflowId": "noop"}
        assert started.payload == {**fields, "status": "running"}
        assert ended.payload == {**fields, "status": str(status)}


async def test_a_write_of_a_run_is_in_the_history_and_in_the_runs_log(ports: Ports) -> None:
    await start_run(ports, "run_1")
    await put_text(ports, "outside the run")
    await put_text(ports, "by the run", run="run_1")

    [newest, first] = await ports.trees.history(AGENT, SOUL)
    assert (newest.run, first.run) == ("run_1", None)
    events = await list_events(ports, run="run_1")
    assert [(event.type, event.sequence) for event in events] == [
        (RUN_STARTED, 1),
        ("workspace.updated", 2),
    ]


async def test_runs_are_found_and_counted_by_status_owner_and_time(ports: Ports) -> None:
    ids = [f"run_{at << 48:024x}" for at in (1000, 2000, 3000)]
    for id, scope in zip(ids, (AGENT, TEMPLATE, AGENT), strict=True):
        await ports.runs.start([(replace(new_run(id), scope=scope), [TEMPLATE])])
    [second, *_] = await ports.runs.list(ACME, RunFilter(TEMPLATE))
    await ports.runs.update(replace(second, status=RunStatus.FAILED, ended_at=NOW), second)

    async def listed(before: str = "", **conditions: Any) -> list[int]:
        filter = RunFilter(**conditions)
        runs = await ports.runs.list(ACME, filter, before=before)
        if not before:
            assert await ports.runs.count(ACME, filter) == len(runs)
        return [ids.index(run.id) for run in runs]

    assert await listed() == [2, 1, 0]
    assert await listed(status=RunStatus.RUNNING) == [2, 0]
    assert await listed(before=ids[2], status=RunStatus.RUNNING) == [0]
    assert await listed(status=RunStatus.FAILED) == await listed(scope=TEMPLATE) == [1]
    assert await listed(scope=AGENT, status=RunStatus.FAILED) == []
    assert await listed(start=2000) == [2, 1]
    assert await listed(end=3000) == await listed(before=ids[2]) == [1, 0]
    assert await listed(scope=AGENT, start=1001, end=3001) == [2]
    assert await listed(before=ids[1], end=3000) == [0]
    assert await ports.runs.count(GLOBEX, RunFilter()) == 0
