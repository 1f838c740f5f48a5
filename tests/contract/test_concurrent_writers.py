"""Concurrent writers: one wins per version, and no acknowledged write is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.support.commits import (
    AGENT,
    DEFAULTS,
    SOUL,
    TEMPLATE,
    commit,
    list_events,
    put_text,
    read_texts,
    try_write,
    version_numbers,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Scope
from carrel.core.store.commit import Applied, Expect, ExpectationFailed, Outcome

pytestmark = pytest.mark.anyio


async def test_of_many_writers_with_one_expectation_exactly_one_wins(ports: Ports) -> None:
    current = await put_text(ports, "seen")
    expect = Expect(AGENT, SOUL, current.version)
    rivals = [try_write(ports, f"rival {n}", expects=(expect,)) for n in range(32)]

    outcomes = await asyncio.gather(*rivals)

    won = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Applied)]
    assert len(won) == 1
    assert await read_texts(ports, AGENT) == {"SOUL.md": f"rival {won[0]}"}
    lost = [outcome for outcome in outcomes if isinstance(outcome, ExpectationFailed)]
    assert {outcome.current.version for outcome in lost if outcome.current} == {2}


async def test_of_many_writers_in_two_processes_exactly_one_wins(ports: Ports) -> None:
    async with ports.twin() as other:
        expect = Expect(AGENT, SOUL, (await put_text(other, "seen")).version)
        assert await read_texts(ports, AGENT) == {"SOUL.md": "seen"}
        rivals = [try_write((ports, other)[n % 2], f"{n}", expects=(expect,)) for n in range(32)]

        outcomes = await asyncio.gather(*rivals)

        won = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Applied)]
        assert len(won) == 1
        for store in (ports, other):
            assert await read_texts(store, AGENT) == {"SOUL.md": f"{won[0]}"}


async def test_a_write_acknowledged_in_one_process_is_visible_in_the_other(ports: Ports) -> None:
    async with ports.twin() as other:
        for n in range(20):
            writer, reader = (ports, other) if n % 2 else (other, ports)
            head = await put_text(writer, f"text {n}")
            assert await read_texts(reader, AGENT) == {"SOUL.md": f"text {n}"}
            assert await reader.trees.revisions([AGENT]) == (head.revision,)


async def test_a_write_does_not_hide_another_processs_concurrent_change(ports: Ports) -> None:
    """A process that cached a file, missed its change and wrote elsewhere must read it anew."""
    async with ports.twin() as other:
        for n in range(3):
            await put_text(ports, f"known {n}")
            [cached] = await ports.trees.read([AGENT], [SOUL])
            changed = await put_text(other, f"changed {n}")
            await put_text(ports, f"elsewhere {n}", scope=TEMPLATE)

            [current] = await ports.trees.read([AGENT], [SOUL])
            assert current.heads[SOUL] == changed != cached.heads[SOUL]
            refused = await try_write(
                ports, "stale", expects=(Expect(AGENT, SOUL, cached.version(SOUL)),)
            )
            assert isinstance(refused, ExpectationFailed)


@pytest.mark.parametrize("expect", [Expect(AGENT, SOUL, 0), Expect(AGENT, SOUL, live=False)])
async def test_of_many_writers_creating_a_path_exactly_one_wins(
    ports: Ports, expect: Expect
) -> None:
    rivals = [try_write(ports, f"rival {n}", expects=(expect,)) for n in range(32)]

    outcomes = await asyncio.gather(*rivals)

    assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1
    assert await version_numbers(ports) == [1]


async def test_many_unconditional_puts_get_consecutive_versions(ports: Ports) -> None:
    heads = await asyncio.gather(*[put_text(ports, f"put {n}") for n in range(64)])

    assert sorted(head.version for head in heads) == list(range(1, 65))
    assert sorted(head.revision for head in heads) == list(range(1, 65))
    [last] = [n for n, head in enumerate(heads) if head.version == 64]
    assert await read_texts(ports, AGENT) == {"SOUL.md": f"put {last}"}
    updates = [event.payload["version"] for event in await list_events(ports)]
    assert updates == list(range(1, 65))


async def test_commits_over_the_same_scopes_in_opposite_order_all_finish(ports: Ports) -> None:
    async def commit_to(scopes: Sequence[Scope]) -> Outcome:
        writes = [await write(ports, "text", scope) for scope in scopes]
        [outcome] = await ports.trees.commit([commit(*writes)])
        return outcome

    forward, backward = (AGENT, TEMPLATE, DEFAULTS), (DEFAULTS, TEMPLATE, AGENT)
    outcomes = await asyncio.gather(*[commit_to(forward if n % 2 else backward) for n in range(24)])

    assert all(isinstance(outcome, Applied) for outcome in outcomes)
    assert await ports.trees.revisions(forward) == (24, 24, 24)


async def test_a_cancelled_caller_does_not_affect_the_others(ports: Ports) -> None:
    tasks = [asyncio.create_task(put_text(ports, f"put {n}")) for n in range(24)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()

    await asyncio.gather(*tasks, return_exceptions=True)
    heads = [task.result() for task in tasks if not task.cancelled()]

    assert len(heads) >= 16
    assert len({head.version for head in heads}) == len(heads)
    await put_text(ports, "after")
    [newest, *_] = await version_numbers(ports)
    assert await version_numbers(ports) == list(range(newest, 0, -1))
