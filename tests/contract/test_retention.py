"""Pruning removes old versions, but never one that a held run can read."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.commits import (
    AGENT,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    commit,
    put_text,
    read_texts,
    start_run,
    version_numbers,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.runs import Run, SnapshotLayer

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1000


async def release(ports: Ports, run: Run) -> None:
    assert await ports.runs.update(replace(run, snapshot_kept=False), run)


async def collect(ports: Ports) -> None:
    await ports.upkeep.collect(NOW + DAY, grace_ms=0, event_retention_ms=DAY)


@pytest.mark.parametrize("keep", [1, 3])
async def test_exactly_the_newest_versions_stay(ports: Ports, keep: int) -> None:
    for n in range(8):
        await put_text(ports, f"text {n}", max_versions=keep)

    assert await version_numbers(ports) == list(range(8, 8 - keep, -1))
    assert await read_texts(ports, AGENT) == {"SOUL.md": "text 7"}
    assert await ports.trees.versions([(AGENT, SOUL, 8 - keep)]) == (None,)


async def test_tombstones_are_pruned_like_any_version(ports: Ports) -> None:
    for text in ("one", None, "three", None, "five"):
        await put_text(ports, text, max_versions=2)

    assert await version_numbers(ports) == [5, 4]


async def test_pruning_a_path_leaves_the_others(ports: Ports) -> None:
    await put_text(ports, "strict", path=RULES, max_versions=1)
    await put_text(ports, "elsewhere", TEMPLATE, max_versions=1)
    for n in range(4):
        await put_text(ports, f"text {n}", max_versions=1)

    assert await version_numbers(ports, path=RULES) == [1]
    assert await version_numbers(ports, TEMPLATE) == [1]


async def test_a_version_number_is_never_reused_after_pruning(
    ports: Ports,
) -> None:
    versions = [
        (await put_text(ports, text, max_versions=1)).version
        for text in ("a", None, "b", None, "c")
    ]

    assert versions == [1, 2, 3, 4, 5]
    assert await version_numbers(ports) == [5]
    assert (await put_text(ports, None, max_versions=1)).version == 6
    assert (await put_text(ports, "d", max_versions=1)).version == 7


async def test_a_version_visible_to_a_held_run_is_never_removed(ports: Ports) -> None:
    for n in range(3):
        await put_text(ports, f"text {n}", max_versions=2)
    run = await start_run(ports, "run_1")
    for n in range(3, 9):
        await put_text(ports, f"text {n}", max_versions=2)
    await collect(ports)

    assert await version_numbers(ports) == [9, 8, 3]
    assert await read_texts(ports, run.snapshot[0]) == {"SOUL.md": "text 2"}


async def test_two_runs_hold_the_versions_that_each_reads(ports: Ports) -> None:
    runs = []
    for n in range(6):
        await put_text(ports, f"text {n}", max_versions=1)
        if n in {1, 3}:
            runs.append(await start_run(ports, f"run_{n}"))

    assert await version_numbers(ports) == [6, 4, 2]
    assert [await read_texts(ports, run.snapshot[0]) for run in runs] == [
        {"SOUL.md": "text 1"},
        {"SOUL.md": "text 3"},
    ]


async def test_a_run_holds_the_newest_version_at_its_revision(ports: Ports) -> None:
    await put_text(ports, "old", max_versions=1)
    for n in range(4):
        await put_text(ports, f"rules {n}", path=RULES, max_versions=1)
    run = await start_run(ports, "run_1")
    for n in range(4):
        await put_text(ports, f"new {n}", max_versions=1)

    assert await read_texts(ports, run.snapshot[0]) == {
        "SOUL.md": "old",
        "GUARDRAILS.md": "rules 3",
    }
    assert await version_numbers(ports) == [5, 1]


async def test_a_file_absent_in_a_snapshot_stays_absent_after_its_creation(ports: Ports) -> None:
    await put_text(ports, "strict", path=RULES)
    before = await start_run(ports, "run_1")
    await put_text(ports, "one", max_versions=1)
    await put_text(ports, None, max_versions=1)
    deleted = await start_run(ports, "run_2")
    for n in range(4):
        await put_text(ports, f"new {n}", max_versions=1)

    assert await read_texts(ports, before.snapshot[0]) == {"GUARDRAILS.md": "strict"}
    assert await read_texts(ports, deleted.snapshot[0]) == {"GUARDRAILS.md": "strict"}
    [tree] = await ports.trees.read(deleted.snapshot, [SOUL])
    assert (tree.version(SOUL), tree.entry(SOUL)) == (2, None)


async def test_a_snapshot_reads_the_same_after_any_later_change(ports: Ports) -> None:
    await put_text(ports, "soul", path=SOUL)
    await put_text(ports, "rules", path=RULES)
    await put_text(ports, "shared", TEMPLATE)
    run = await start_run(ports, "run_1", AGENT, TEMPLATE)
    before = await ports.trees.read(run.snapshot)
    contents = [await read_texts(ports, layer) for layer in run.snapshot]

    for n in range(5):
        await put_text(ports, f"edit {n}", path=SOUL, max_versions=1)
        await put_text(ports, None, path=RULES, max_versions=1)
        await put_text(ports, f"anew {n}", path=RULES, max_versions=1)
        await put_text(ports, f"moved {n}", TEMPLATE, max_versions=1)
    await put_text(ports, None, TEMPLATE, max_versions=1)
    await collect(ports)

    assert await ports.trees.read(run.snapshot) == before
    assert await ports.trees.read(run.snapshot, [SOUL, RULES]) == before
    assert [await read_texts(ports, layer) for layer in run.snapshot] == contents


async def test_releasing_a_run_frees_the_versions_that_only_it_could_read(ports: Ports) -> None:
    await put_text(ports, "seen")
    first, second = (
        await start_run(ports, "run_1"),
        await start_run(ports, "run_2", SnapshotLayer(AGENT, 1)),
    )
    await ports.trees.commit([commit(await write(ports, f"text {n}")) for n in range(101)])
    assert await version_numbers(ports) == [*range(102, 2, -1), 1]

    await release(ports, first)
    await put_text(ports, "still held")
    await collect(ports)
    assert await version_numbers(ports) == [*range(103, 3, -1), 1]
    assert await read_texts(ports, second.snapshot[0]) == {"SOUL.md": "seen"}

    await release(ports, second)
    await put_text(ports, "free")
    await collect(ports)
    assert await version_numbers(ports) == [*range(104, 4, -1)]
