"""The log of a scope: all that it said, in order, and from where on nothing of it is missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.contract.scenes import (
    ACME,
    AGENT,
    NOW,
    RULES,
    SOUL,
    STRANGER,
    commit,
    numbers,
    say,
    start,
    write,
)
from tests.contract.worlds import World

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1000


async def told(world: World, **more: object) -> list[tuple[int, str, int]]:
    log = await world.trees.log(AGENT, **more)  # type: ignore[arg-type]  # as a test says it
    return [(one.head.revision, one.head.path.text, one.head.version) for one in log]


async def enable(world: World, enabled: object = True, scope: Scope = AGENT) -> None:
    body = {"slug": scope.name, "config": {"workspaceGit": {"enabled": enabled}}}
    change = RecordChange(scope.tenant, RecordType.AGENT, scope.name, body)
    await world.trees.commit([commit(changes=(change,))])


async def tidy(world: World) -> None:
    if world.upkeep:
        await world.upkeep.collect(NOW + DAY, grace=0, events_kept=DAY)


async def test_a_log_has_every_version_in_the_order_of_revisions(world: World) -> None:
    await say(world, "one", path=SOUL, by="ada", why="first")
    await world.trees.commit(
        [commit(await write(world, "x", path=SOUL), await write(world, "y", path=RULES), run="r1")]
    )
    await say(world, None, path=SOUL)
    await say(world, "elsewhere", STRANGER)

    assert await told(world) == [
        (1, "SOUL.md", 1),
        (2, "GUARDRAILS.md", 1),
        (2, "SOUL.md", 2),
        (3, "SOUL.md", 3),
    ]
    first, second, _, last = await world.trees.log(AGENT)
    assert (first.by, first.why, first.run, first.head.at) == ("ada", "first", None, NOW)
    assert second.run == "r1"
    assert last.head.entry is None


async def test_a_log_can_be_read_in_pieces(world: World) -> None:
    paths = [Path(name) for name in ("b", "a", "é", "z", "A")]
    await world.trees.commit([commit(*[await write(world, "x", path=path) for path in paths])])
    await say(world, "y", path=paths[0])
    whole = await told(world)

    pieces, after = [], (0, "", 0)
    while some := await told(world, after=after, limit=2):
        pieces += some
        after = some[-1]

    assert pieces == whole == sorted(whole)
    assert len(whole) == 6


async def test_of_a_scope_that_never_said_anything_nothing_is_missing(world: World) -> None:
    assert await told(world) == []
    assert await world.trees.unbroken(AGENT) == 0


async def test_a_log_is_unbroken_from_the_version_after_the_last_that_was_pruned(
    world: World,
) -> None:
    await say(world, "strict", path=RULES)
    for n in range(4):
        await say(world, f"text {n}", keep=10)
    assert await world.trees.unbroken(AGENT) == 0

    run = await start(world, "run_1")  # at revision 5, where it sees version 4
    for n in range(4, 8):
        await say(world, f"text {n}", keep=2)
    [_, newer, seen] = (await numbers(world))[:3]

    assert (newer, seen) == (7, 4)
    assert await world.trees.unbroken(AGENT) == 8  # the revision of version 7
    assert await world.runs.change(replace(run, kept=False), run)


@pytest.mark.parametrize("keep", [1, 3])
async def test_nothing_is_pruned_of_an_agent_that_keeps_its_history_in_git(
    world: World, keep: int
) -> None:
    await enable(world)
    for n in range(8):
        await say(world, f"text {n}", keep=keep)
    await tidy(world)

    assert await numbers(world) == list(range(8, 0, -1))
    assert await world.trees.unbroken(AGENT) == 0


@pytest.mark.parametrize("said", [False, None, "true", 1])
async def test_what_does_not_enable_git_holds_nothing(world: World, said: object) -> None:
    await enable(world, said)
    for n in range(5):
        await say(world, f"text {n}", keep=2)

    assert await numbers(world) == [5, 4]


async def test_only_the_agent_itself_is_spared(world: World) -> None:
    await enable(world)
    namesake = Scope(ACME, ScopeKind.TEMPLATE, AGENT.name)
    for n in range(4):
        await say(world, f"text {n}", namesake, keep=1)
        await say(world, f"text {n}", STRANGER, keep=1)

    assert await numbers(world, namesake) == [4]
    assert await numbers(world, STRANGER) == [4]


async def test_once_git_is_off_what_is_old_goes(world: World) -> None:
    await enable(world)
    for n in range(4):
        await say(world, f"text {n}", keep=2)
    await enable(world, False)
    await say(world, "text 4", keep=2)

    assert 3 not in await numbers(world)
    assert await world.trees.unbroken(AGENT) == 4
