"""What every Recalls must do: count what came up, for whom, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.commits import ACME, GLOBEX, NOW
from tests.support.contract_stores import Ports

from carrel.core.memory.recall import Recall, RecallStats

pytestmark = pytest.mark.anyio
DAY = 86_400_000
MIDNIGHT = NOW // DAY * DAY
_PLACE = iter(range(1_000_000))


def recall(memory: str = "m1", query: str = "tea", score: float = 1.0, **more: Any) -> Recall:
    facts = {"id": f"rcl_{next(_PLACE):08}", "agent": "marco", "at": NOW, **more}
    return Recall(memory=memory, query=query, score=score, **facts)


async def test_nothing_has_come_up_at_first(ports: Ports) -> None:
    assert await ports.recalls.stats_by_memory(ACME, "marco") == ()
    assert await ports.recalls.count_since(ACME, "marco", 0) == {}
    assert await ports.recalls.delete(ACME, "marco", ["m1"]) == 0
    assert await ports.recalls.delete(ACME, "marco", []) == 0
    assert await ports.recalls.prune(ACME, "marco", NOW) == 0
    await ports.recalls.record(ACME, [])


async def test_recalls_of_a_memory_are_summed_up(ports: Ports) -> None:
    await ports.recalls.record(
        ACME,
        [
            recall(score=1.0, at=MIDNIGHT - 1),
            recall(score=0.5, at=MIDNIGHT),
            recall(query="Tea", score=0.75, at=MIDNIGHT + DAY - 1),
            recall("m2", query="é ☕"),
        ],
    )

    assert await ports.recalls.stats_by_memory(ACME, "marco") == (
        RecallStats("m1", 3, 0.75, queries=2, days=2, latest=MIDNIGHT + DAY - 1),
        RecallStats("m2", 1, 1.0, queries=1, days=1, latest=NOW),
    )


async def test_what_came_up_most_is_first_and_ties_go_by_id(ports: Ports) -> None:
    named = ["m3", "m1", "m2", "m2"]
    await ports.recalls.record(ACME, [recall(memory) for memory in named])

    tallies = await ports.recalls.stats_by_memory(ACME, "marco")
    assert [one.memory for one in tallies] == ["m2", "m1", "m3"]
    few = await ports.recalls.stats_by_memory(ACME, "marco", limit=2)
    assert [one.memory for one in few] == ["m2", "m1"]


async def test_recording_twice_is_recording_once(ports: Ports) -> None:
    one = recall()
    await ports.recalls.record(ACME, [one])
    await ports.recalls.record(ACME, [one, recall()])

    [tally] = await ports.recalls.stats_by_memory(ACME, "marco")
    assert tally.hits == 2


async def test_agents_and_tenants_are_kept_apart(ports: Ports) -> None:
    await ports.recalls.record(ACME, [recall(), recall(agent="polo")])
    await ports.recalls.record(GLOBEX, [recall(), recall()])

    assert [one.hits for one in await ports.recalls.stats_by_memory(ACME, "marco")] == [1]
    assert [one.hits for one in await ports.recalls.stats_by_memory(GLOBEX, "marco")] == [2]
    assert await ports.recalls.delete(GLOBEX, "polo", ["m1"]) == 0
    assert await ports.recalls.delete(ACME, "polo", ["m1"]) == 1
    assert await ports.recalls.prune(GLOBEX, "marco", NOW + 1) == 2
    assert await ports.recalls.count_since(ACME, "marco", 0) == {"m1": 1}


async def test_what_came_up_since_a_moment_is_counted(ports: Ports) -> None:
    recalls = [recall(at=NOW - 1), recall(at=NOW), recall("m2", at=NOW + 1)]
    await ports.recalls.record(ACME, recalls)

    assert await ports.recalls.count_since(ACME, "marco", NOW) == {"m1": 1, "m2": 1}


async def test_a_memorys_recalls_are_dropped_all_or_the_old_ones(ports: Ports) -> None:
    recalls = [recall(at=NOW - 1), recall(at=NOW), recall("m2", at=NOW - 1)]
    await ports.recalls.record(ACME, recalls)

    assert await ports.recalls.delete(ACME, "marco", ["m1", "none"], before=NOW) == 1
    assert await ports.recalls.count_since(ACME, "marco", 0) == {"m1": 1, "m2": 1}
    assert await ports.recalls.delete(ACME, "marco", ["m1", "m2"]) == 2


async def test_pruning_takes_what_is_older(ports: Ports) -> None:
    await ports.recalls.record(ACME, [recall(at=NOW - 1), recall(at=NOW), recall("m2", at=0)])

    assert await ports.recalls.prune(ACME, "marco", NOW) == 2
    assert await ports.recalls.count_since(ACME, "marco", 0) == {"m1": 1}
