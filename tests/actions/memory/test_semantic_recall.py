"""Semantic recall: memories found by embedding, if there is a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support import tiny_embedding_model as tiny_model
from tests.support.memory_agents import MemoryAgent, create_memory_agent
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.memory import memories, semantic_recall
from carrel.adapters.model2vec import Model2VecIndex
from carrel.core.errors import Forbidden
from carrel.core.runs import Audience
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


class CountingRecords:
    """Records that count their list calls."""

    def __init__(self, records: Any) -> None:
        self._records, self.lists = records, 0

    def __getattr__(self, name: str) -> Any:
        self.lists += name == "list"
        return getattr(self._records, name)


@pytest.fixture
async def plain(anywhere: Ports) -> MemoryAgent:
    return await create_memory_agent(anywhere)


@pytest.fixture
async def marco(anywhere: Ports) -> MemoryAgent:
    return await create_memory_agent(
        replace(anywhere, semantic_index=Model2VecIndex(tiny_model.model()))
    )


async def test_a_memory_is_found_by_meaning_without_a_common_word(marco: MemoryAgent) -> None:
    car = await marco.remember("Ada parks her car in the cellar")
    await marco.remember("Bob drinks tea")
    hits = await memories.recall(marco.ports, marco.owner, "marco", "automobile")
    assert [(hit.memory, round(hit.score, 1)) for hit in hits] == [(car, 1.0)]
    [stats] = await marco.ports.recalls.stats_by_memory(marco.owner.tenant, car.agent)
    assert (stats.memory, stats.hits) == (car.id, 1)


async def test_without_a_model_only_words_match(plain: MemoryAgent) -> None:
    await plain.remember("Ada parks her car in the cellar")
    assert await plain.recall("automobile") == []


async def test_a_text_with_the_phrase_ranks_above_similar_texts(marco: MemoryAgent) -> None:
    for text in ("a vehicle", "the automobile of Ada", "car", "my automobile is a car", "tea"):
        await marco.remember(text)
    recalled = await marco.recall("automobile", limit=10)
    assert set(recalled[:2]) == {"my automobile is a car", "the automobile of Ada"}
    assert recalled[2:] == ["car", "a vehicle"]
    assert (await marco.recall("the automobile of", limit=10))[0] == "the automobile of Ada"


async def test_a_text_with_the_phrase_ranks_above_matches_in_words_and_meaning(
    marco: MemoryAgent,
) -> None:
    phrase = "blue automobile: tea, tea, tea and tea"
    for text in (phrase, "automobile in blue", "blue car"):
        await marco.remember(text)
    recalled = await marco.recall("blue automobile")
    assert recalled[0] == phrase
    assert set(recalled[1:]) == {"automobile in blue", "blue car"}


async def test_a_text_of_low_similarity_is_not_found(marco: MemoryAgent) -> None:
    await marco.remember("blue")
    assert await marco.recall("vehicle") == []


async def test_a_match_in_words_and_meaning_ranks_above_either_alone(marco: MemoryAgent) -> None:
    for text in ("blue, the car of Bob is", "a blue hat is cheap", "a vehicle"):
        await marco.remember(text)
    recalled = await marco.recall("is the automobile blue", limit=10)
    assert recalled[0] == "blue, the car of Bob is"
    assert len(recalled) == 3


async def test_tags_are_embedded_and_an_empty_query_matches_nothing(marco: MemoryAgent) -> None:
    await marco.remember("It stands in the cellar", tags=("car",))
    assert await marco.recall("vehicle") == ["It stands in the cellar"]
    for query in ("", "!!!", "coffee", "beverage", "x" * 10_000, "<!-- car -->"):
        hits = await memories.search(marco.ports, marco.owner, "marco", query)
        assert len(hits) == (query == "<!-- car -->"), query


async def test_a_query_with_a_lone_surrogate_is_answered(marco: MemoryAgent) -> None:
    await marco.remember("car")
    hits = await memories.search(marco.ports, marco.owner, "marco", "automobile \ud800")
    assert [hit.memory.content for hit in hits] == ["car"]


async def test_new_and_forgotten_memories_take_effect_at_once(marco: MemoryAgent) -> None:
    car = await marco.remember("car")
    assert await marco.recall("vehicle") == ["car"]
    await marco.remember("automobile")
    assert sorted(await marco.recall("vehicle")) == ["automobile", "car"]
    await marco.forget(car.id)
    assert await marco.recall("vehicle") == ["automobile"]


async def test_a_memory_forgotten_by_another_process_is_not_returned(marco: MemoryAgent) -> None:
    car = await marco.remember("car")

    class ForgettingIndex(Model2VecIndex):
        async def nearest(self, queries: Sequence[str], *args: Any, **options: Any) -> Any:
            nearest = await super().nearest(queries, *args, **options)
            await marco.forget(car.id)
            return nearest

    ports = replace(marco.ports, semantic_index=ForgettingIndex(tiny_model.model()))
    assert await memories.search(ports, marco.owner, "marco", "vehicle") == ()


async def test_memories_are_read_once_until_one_changes(marco: MemoryAgent) -> None:
    for n in range(7):
        await marco.remember(f"car {n}")
    records: Any = CountingRecords(marco.ports.records)
    ports = replace(marco.ports, records=records)

    async def count_hits() -> int:
        return len(await memories.search(ports, marco.owner, "marco", "vehicle", limit=50))

    assert await asyncio.gather(*[count_hits() for _ in range(5)]) == [7] * 5
    once = records.lists
    assert 0 < once <= 2
    assert await count_hits() == 7
    assert records.lists == once
    await marco.remember("automobile")
    assert await count_hits() == 8
    assert records.lists > once


async def test_all_pages_are_compared(marco: MemoryAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic_recall, "_PAGE_SIZE", 2)
    for n in range(5):
        await marco.remember(f"car {n}")
    assert len(await marco.recall("vehicle", limit=50)) == 5


async def test_agents_and_tenants_find_only_their_own_memories(marco: MemoryAgent) -> None:
    ports, tenant = marco.ports, marco.tenant
    await tenant.create_agent("polo", "Polo")
    polo = MemoryAgent(ports, tenant, "polo")
    _, stranger = await create_tenant(ports, "globex")
    other = MemoryAgent(ports, await OverlayTenant(ports, stranger).open())
    await marco.remember("car of Marco")
    await other.remember("car of a stranger")
    for expected in ([], ["car of Polo"]):
        assert await marco.recall("vehicle") == ["car of Marco"]
        assert await polo.recall("vehicle") == expected
        assert await other.recall("vehicle") == ["car of a stranger"]
        await polo.remember("car of Polo")


async def test_an_id_of_another_agent_is_ignored(marco: MemoryAgent) -> None:
    await marco.tenant.create_agent("polo", "Polo")
    mine = await marco.remember("car")

    class FixedIndex(Model2VecIndex):
        async def nearest(self, *args: Any, **options: Any) -> Any:
            return (((mine.id, 1.0),),)

    ports = replace(marco.ports, semantic_index=FixedIndex(tiny_model.model()))
    assert len(await memories.search(ports, marco.owner, "marco", "vehicle")) == 1
    assert await memories.search(ports, marco.owner, "polo", "vehicle") == ()


async def test_semantic_recall_is_forbidden_for_a_shared_audience(marco: MemoryAgent) -> None:
    await marco.remember("car")
    for operation in (memories.recall, memories.search):
        with pytest.raises(Forbidden):
            await operation(marco.ports, marco.owner, "marco", "vehicle", mode=Audience.SHARED)


async def test_the_number_of_results_is_limited(marco: MemoryAgent) -> None:
    for n in range(memories.MAX_RESULTS + 5):
        await marco.remember(f"car {n}")
    assert len(await marco.recall("vehicle", limit=1000)) == memories.MAX_RESULTS
    assert await marco.recall("vehicle", limit=-1) == []
