"""What pruning takes: old versions, but never one that a kept run can see."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.contract.scenes import (
    AGENT,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    commit,
    numbers,
    say,
    start,
    texts,
    write,
)
from tests.contract.worlds import World

from carrel.core.runs import Run, SnapshotLayer

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1000


async def let_go(world: World, run: Run) -> None:
    assert await world.runs.change(replace(run, kept=False), run)


async def tidy(world: World) -> None:
    if world.upkeep:
        await world.upkeep.collect(NOW + DAY, grace=0, events_kept=DAY)


@pytest.mark.parametrize("keep", [1, 3])
async def test_exactly_the_newest_versions_stay(world: World, keep: int) -> None:
    for n in range(8):
        await say(world, f"text {n}", keep=keep)

    assert await numbers(world) == list(range(8, 8 - keep, -1))
    assert await texts(world, AGENT) == {"SOUL.md": "text 7"}
    assert await world.trees.versions([(AGENT, SOUL, 8 - keep)]) == (None,)


async def test_tombstones_are_pruned_like_any_version(world: World) -> None:
    for text in ("one", None, "three", None, "five"):
        await say(world, text, keep=2)

    assert await numbers(world) == [5, 4]


async def test_pruning_one_path_spares_the_others(world: World) -> None:
    await say(world, "strict", path=RULES, keep=1)
    await say(world, "elsewhere", TEMPLATE, keep=1)
    for n in range(4):
        await say(world, f"text {n}", keep=1)

    assert await numbers(world, path=RULES) == [1]
    assert await numbers(world, TEMPLATE) == [1]


async def test_a_version_number_is_never_given_twice_even_when_all_before_it_are_gone(
    world: World,
) -> None:
    given = [(await say(world, text, keep=1)).version for text in ("a", None, "b", None, "c")]

    assert given == [1, 2, 3, 4, 5]
    assert await numbers(world) == [5]
    assert (await say(world, None, keep=1)).version == 6
    assert (await say(world, "d", keep=1)).version == 7


async def test_what_a_kept_run_can_see_is_never_taken(world: World) -> None:
    for n in range(3):
        await say(world, f"text {n}", keep=2)
    run = await start(world, "run_1")
    for n in range(3, 9):
        await say(world, f"text {n}", keep=2)
    await tidy(world)

    assert await numbers(world) == [9, 8, 3]
    assert await texts(world, run.snapshot[0]) == {"SOUL.md": "text 2"}


async def test_two_runs_hold_what_each_of_them_sees(world: World) -> None:
    runs = []
    for n in range(6):
        await say(world, f"text {n}", keep=1)
        if n in {1, 3}:
            runs.append(await start(world, f"run_{n}"))

    assert await numbers(world) == [6, 4, 2]
    assert [await texts(world, run.snapshot[0]) for run in runs] == [
        {"SOUL.md": "text 1"},
        {"SOUL.md": "text 3"},
    ]


async def test_a_run_holds_what_was_newest_at_its_revision_however_old(world: World) -> None:
    await say(world, "old", keep=1)
    for n in range(4):
        await say(world, f"rules {n}", path=RULES, keep=1)
    run = await start(world, "run_1")
    for n in range(4):
        await say(world, f"new {n}", keep=1)

    assert await texts(world, run.snapshot[0]) == {"SOUL.md": "old", "GUARDRAILS.md": "rules 3"}
    assert await numbers(world) == [5, 1]


async def test_a_run_that_saw_no_file_still_sees_none_after_it_was_made(world: World) -> None:
    await say(world, "strict", path=RULES)
    before = await start(world, "run_1")
    await say(world, "one", keep=1)
    await say(world, None, keep=1)
    gone = await start(world, "run_2")
    for n in range(4):
        await say(world, f"new {n}", keep=1)

    assert await texts(world, before.snapshot[0]) == {"GUARDRAILS.md": "strict"}
    assert await texts(world, gone.snapshot[0]) == {"GUARDRAILS.md": "strict"}
    [tree] = await world.trees.read(gone.snapshot, [SOUL])
    assert (tree.version(SOUL), tree.entry(SOUL)) == (2, None)


async def test_a_snapshot_reads_the_same_whatever_happens_after(world: World) -> None:
    await say(world, "soul", path=SOUL)
    await say(world, "rules", path=RULES)
    await say(world, "shared", TEMPLATE)
    run = await start(world, "run_1", AGENT, TEMPLATE)
    before = await world.trees.read(run.snapshot)
    contents = [await texts(world, layer) for layer in run.snapshot]

    for n in range(5):
        await say(world, f"edit {n}", path=SOUL, keep=1)
        await say(world, None, path=RULES, keep=1)
        await say(world, f"anew {n}", path=RULES, keep=1)
        await say(world, f"moved {n}", TEMPLATE, keep=1)
    await say(world, None, TEMPLATE, keep=1)
    await tidy(world)

    assert await world.trees.read(run.snapshot) == before
    assert await world.trees.read(run.snapshot, [SOUL, RULES]) == before
    assert [await texts(world, layer) for layer in run.snapshot] == contents


async def test_letting_a_run_go_frees_what_only_it_could_see(world: World) -> None:
    await say(world, "seen")
    first, second = (
        await start(world, "run_1"),
        await start(world, "run_2", SnapshotLayer(AGENT, 1)),
    )
    await world.trees.commit([commit(await write(world, f"text {n}")) for n in range(101)])
    assert await numbers(world) == [*range(102, 2, -1), 1]

    await let_go(world, first)
    await say(world, "still held")
    await tidy(world)
    assert await numbers(world) == [*range(103, 3, -1), 1]
    assert await texts(world, second.snapshot[0]) == {"SOUL.md": "seen"}

    await let_go(world, second)
    await say(world, "free")
    await tidy(world)
    assert await numbers(world) == [*range(104, 4, -1)]
