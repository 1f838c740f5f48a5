"""Contract of scopes at a time: their revision then, and what was pruned of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import ACME, AGENT, DEFAULTS, NOW, RULES, SOUL, commit, start_run, write
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path
from carrel.core.store.tree import ScopeMoment

pytestmark = pytest.mark.anyio


async def put(ports: Ports, text: str, at: int, path: Path = SOUL, max_versions: int = 100) -> None:
    written = commit(await write(ports, text, AGENT, path))
    await ports.trees.commit([replace(written, at=at, max_versions=max_versions)])


async def test_a_moment_has_the_last_revision_up_to_a_time(ports: Ports) -> None:
    for n in range(3):
        await put(ports, f"text {n}", NOW + 10 * n)

    async def revision(at: int) -> int:
        [moment] = await ports.trees.moments([AGENT], at)
        return moment.revision

    assert [await revision(NOW + at) for at in (-1, 0, 9, 10, 99)] == [0, 1, 1, 2, 3]
    moments = await ports.trees.moments([DEFAULTS, AGENT], NOW + 10)
    assert moments == (ScopeMoment(0), ScopeMoment(2))
    assert await ports.trees.moments([], NOW) == ()


async def test_a_moment_names_the_paths_whose_version_then_was_pruned(ports: Ports) -> None:
    await put(ports, "strict", NOW, RULES)
    for n in range(4):
        await put(ports, f"text {n}", NOW + 10 * n)
    run = await start_run(ports, "run_1")  # keeps the version of NOW + 30
    for n in range(4, 8):
        await put(ports, f"text {n}", NOW + 10 * n, max_versions=2)

    async def pruned_paths(at: int) -> set[str]:
        [moment] = await ports.trees.moments([AGENT], NOW + at)
        return {path.text for path in moment.pruned_paths}

    assert run.snapshot_kept
    assert await pruned_paths(15) == {"SOUL.md"}
    assert await pruned_paths(30) == {"SOUL.md"}  # the next version left is not the next one
    assert await pruned_paths(70) == set()
    assert await pruned_paths(5) == await pruned_paths(-1) == set()


async def test_runs_are_listed_by_the_revisions_of_a_layer(ports: Ports) -> None:
    await put(ports, "one", NOW)
    await start_run(ports, "run_1")
    await start_run(ports, "run_2", AGENT, DEFAULTS)
    await put(ports, "two", NOW + 1)
    await start_run(ports, "run_3")

    async def ids(first: int, end: int | None, **options: Any) -> list[str]:
        runs = await ports.runs.list_with_layer(AGENT, (first, end), **options)
        assert runs == tuple(run for run in await ports.runs.get(ACME, [r.id for r in runs]))
        return [run.id for run in runs]

    assert await ids(1, 2) == ["run_2", "run_1"]
    assert await ids(2, None) == ["run_3"]
    assert await ids(0, None, before="run_3", limit=1) == ["run_2"]
    assert await ids(0, None, scope=DEFAULTS) == []
    assert await ids(0, None, scope=AGENT) == ["run_3", "run_2", "run_1"]
