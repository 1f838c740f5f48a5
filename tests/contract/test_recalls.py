"""Contract of RecallLog: recalls counted per agent and memory."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.commits import ACME, GLOBEX, NOW
from tests.support.contract_stores import Ports

from carrel.core.memory.recall_records import Recall, RecallStats

pytestmark = pytest.mark.anyio
DAY = 86_400_000
MIDNIGHT = NOW // DAY * DAY
_IDS = iter(range(1_000_000))


def recall(memory: str = "m1", query: str = "tea", score: float = 1.0, **changed: Any) -> Recall:
    fields = {"id": f"rcl_{next(_IDS):08}", "agent": "marco", "at": NOW, **changed}
    return Recall(memory=memory, query=query, score=score, **fields)


async def test_a_new_log_is_empty(ports: Ports) -> None:
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


async def test_the_most_recalled_memory_is_first_and_ties_go_by_id(ports: Ports) -> None:
    named = ["m3", "m1", "m2", "m2"]
    await ports.recalls.record(ACME, [recall(memory) for memory in named])

    stats = await ports.recalls.stats_by_memory(ACME, "marco")
    assert [item.memory for item in stats] == ["m2", "m1", "m3"]
    few = await ports.recalls.stats_by_memory(ACME, "marco", limit=2)
    assert [item.memory for item in few] == ["m2", "m1"]


async def test_recalls_below_a_score_do_not_count(ports: Ports) -> None:
    recalls = [recall(score=0.9), recall(query="the", score=0.01), recall("m2", score=0.01)]
    await ports.recalls.record(ACME, recalls)

    [stats] = await ports.recalls.stats_by_memory(ACME, "marco", min_score=0.05)
    assert stats == RecallStats("m1", 1, 0.9, queries=1, days=1, latest=NOW)


async def test_recording_a_recall_twice_counts_it_once(ports: Ports) -> None:
    first = recall()
    await ports.recalls.record(ACME, [first])
    await ports.recalls.record(ACME, [first, recall()])

    [stats] = await ports.recalls.stats_by_memory(ACME, "marco")
    assert stats.hits == 2


async def test_agents_and_tenants_are_separate(ports: Ports) -> None:
    await ports.recalls.record(ACME, [recall(), recall(agent="polo")])
    await ports.recalls.record(GLOBEX, [recall(), recall()])

    assert [stats.hits for stats in await ports.recalls.stats_by_memory(ACME, "marco")] == [1]
    assert [stats.hits for stats in await ports.recalls.stats_by_memory(GLOBEX, "marco")] == [2]
    assert await ports.recalls.delete(GLOBEX, "polo", ["m1"]) == 0
    assert await ports.recalls.delete(ACME, "polo", ["m1"]) == 1
    assert await ports.recalls.prune(GLOBEX, "marco", NOW + 1) == 2
    assert await ports.recalls.count_since(ACME, "marco", 0) == {"m1": 1}


async def test_recalls_since_a_time_are_counted(ports: Ports) -> None:
    recalls = [recall(at=NOW - 1), recall(at=NOW), recall("m2", at=NOW + 1)]
    await ports.recalls.record(ACME, recalls)

    assert await ports.recalls.count_since(ACME, "marco", NOW) == {"m1": 1, "m2": 1}


async def test_deleting_recalls_removes_all_or_only_older_ones(ports: Ports) -> None:
    recalls = [recall(at=NOW - 1), recall(at=NOW), recall("m2", at=NOW - 1)]
    await ports.recalls.record(ACME, recalls)

    assert await ports.recalls.delete(ACME, "marco", ["m1", "none"], before=NOW) == 1
    assert await ports.recalls.count_since(ACME, "marco", 0) == {"m1": 1, "m2": 1}
    assert await ports.recalls.delete(ACME, "marco", ["m1", "m2"]) == 2


async def test_pruning_removes_older_recalls(ports: Ports) -> None:
    await ports.recalls.record(ACME, [recall(at=NOW - 1), recall(at=NOW), recall("m2", at=0)])

    assert await ports.recalls.prune(ACME, "marco", NOW) == 2
    assert await ports.recalls.count_since(ACME, "marco", 0) == {"m1": 1}
