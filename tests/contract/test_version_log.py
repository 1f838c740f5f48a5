"""The version log of a scope: complete, in order, and known gaps after pruning."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.commits import (
    ACME,
    AGENT,
    FOREIGN_AGENT,
    NOW,
    RULES,
    SOUL,
    commit,
    put_text,
    start_run,
    version_numbers,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.entry import Version
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1000


async def read_log(ports: Ports, **options: object) -> list[tuple[int, str, int]]:
    log = await ports.trees.log(AGENT, **options)  # type: ignore[arg-type]  # options of a test
    return [
        (version.head.revision, version.head.path.text, version.head.version) for version in log
    ]


async def enable(ports: Ports, enabled: object = True, scope: Scope = AGENT) -> None:
    body = {"slug": scope.name, "config": {"workspaceGit": {"enabled": enabled}}}
    change = RecordChange(scope.tenant, RecordType.AGENT, scope.name, body)
    await ports.trees.commit([commit(changes=(change,))])


async def collect(ports: Ports) -> None:
    await ports.upkeep.collect(NOW + DAY, grace_ms=0, event_retention_ms=DAY)


async def test_a_log_has_every_version_in_the_order_of_revisions(ports: Ports) -> None:
    await put_text(ports, "one", path=SOUL, author="ada", reason="first")
    await ports.trees.commit(
        [commit(await write(ports, "x", path=SOUL), await write(ports, "y", path=RULES), run="r1")]
    )
    await put_text(ports, None, path=SOUL)
    await put_text(ports, "elsewhere", FOREIGN_AGENT)

    assert await read_log(ports) == [
        (1, "SOUL.md", 1),
        (2, "GUARDRAILS.md", 1),
        (2, "SOUL.md", 2),
        (3, "SOUL.md", 3),
    ]
    first, second, _, last = await ports.trees.log(AGENT)
    assert (first.author, first.reason, first.run, first.head.at) == ("ada", "first", None, NOW)
    assert second.run == "r1"
    assert last.head.entry is None


async def test_a_log_can_be_read_in_pages(ports: Ports) -> None:
    paths = [Path(name) for name in ("b", "a", "é", "z", "A")]
    await ports.trees.commit([commit(*[await write(ports, "x", path=path) for path in paths])])
    await put_text(ports, "y", path=paths[0])
    complete = await read_log(ports)

    pages, after = [], (0, "", 0)
    while page := await read_log(ports, after=after, limit=2):
        pages += page
        after = page[-1]

    assert pages == complete == sorted(complete)
    assert len(complete) == 6


async def test_the_latest_versions_are_the_log_backwards(ports: Ports) -> None:
    paths = [Path(name) for name in ("b", "a", "é", "z", "A")]
    await ports.trees.commit([commit(*[await write(ports, "x", path=path) for path in paths])])
    await put_text(ports, "y", path=paths[0])
    await put_text(ports, None, path=paths[1])
    await put_text(ports, "elsewhere", FOREIGN_AGENT)
    log = await ports.trees.log(AGENT)

    pages: list[Version] = []
    before = None
    while page := await ports.trees.latest_versions(AGENT, before=before, limit=2):
        pages += page
        last = page[-1].head
        before = (last.revision, last.path.text, last.version)

    assert tuple(pages) == log[::-1] == await ports.trees.latest_versions(AGENT)
    assert [version.head.revision for version in pages] == [3, 2, 1, 1, 1, 1, 1]
    at_second = (2, "", 0)
    assert await ports.trees.latest_versions(AGENT, before=at_second) == log[4::-1]


async def test_the_log_of_an_empty_scope_is_complete(ports: Ports) -> None:
    assert await read_log(ports) == []
    assert await ports.trees.latest_versions(AGENT) == ()
    assert await ports.trees.complete_since(AGENT) == 0


async def test_a_log_is_complete_from_the_version_after_the_last_pruned_one(
    ports: Ports,
) -> None:
    await put_text(ports, "strict", path=RULES)
    for n in range(4):
        await put_text(ports, f"text {n}", max_versions=10)
    assert await ports.trees.complete_since(AGENT) == 0

    run = await start_run(ports, "run_1")  # at revision 5, which has version 4
    for n in range(4, 8):
        await put_text(ports, f"text {n}", max_versions=2)
    [_, newer, visible] = (await version_numbers(ports))[:3]

    assert (newer, visible) == (7, 4)
    assert await ports.trees.complete_since(AGENT) == 8  # the revision of version 7
    assert await ports.runs.update(replace(run, snapshot_kept=False), run)


@pytest.mark.parametrize("keep", [1, 3])
async def test_no_version_of_an_agent_with_git_history_is_pruned(ports: Ports, keep: int) -> None:
    await enable(ports)
    for n in range(8):
        await put_text(ports, f"text {n}", max_versions=keep)
    await collect(ports)

    assert await version_numbers(ports) == list(range(8, 0, -1))
    assert await ports.trees.complete_since(AGENT) == 0


@pytest.mark.parametrize("enabled", [False, None, "true", 1])
async def test_an_invalid_git_setting_prevents_no_pruning(ports: Ports, enabled: object) -> None:
    await enable(ports, enabled)
    for n in range(5):
        await put_text(ports, f"text {n}", max_versions=2)

    assert await version_numbers(ports) == [5, 4]


async def test_git_history_prevents_pruning_for_its_own_agent_only(ports: Ports) -> None:
    await enable(ports)
    namesake = Scope(ACME, ScopeKind.TEMPLATE, AGENT.name)
    for n in range(4):
        await put_text(ports, f"text {n}", namesake, max_versions=1)
        await put_text(ports, f"text {n}", FOREIGN_AGENT, max_versions=1)

    assert await version_numbers(ports, namesake) == [4]
    assert await version_numbers(ports, FOREIGN_AGENT) == [4]


async def test_versions_are_pruned_again_after_git_is_disabled(ports: Ports) -> None:
    await enable(ports)
    for n in range(4):
        await put_text(ports, f"text {n}", max_versions=2)
    await enable(ports, False)
    await put_text(ports, "text 4", max_versions=2)

    assert 3 not in await version_numbers(ports)
    assert await ports.trees.complete_since(AGENT) == 4
