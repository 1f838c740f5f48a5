"""Memories that are found by what they mean, where there is a model that knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support import tiny_embedding_model as thesaurus
from tests.support.memory_agents import MemoryAgent, create_memory_agent
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.memory import memories, semantic_recall
from carrel.adapters.model2vec import Model2VecIndex
from carrel.core.errors import Forbidden
from carrel.core.runs import Audience
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


class Listed:
    """Records that tell how often a list of them was asked for."""

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
        replace(anywhere, semantic_index=Model2VecIndex(thesaurus.model()))
    )


async def test_a_memory_is_found_by_meaning_with_no_word_in_common(marco: MemoryAgent) -> None:
    car = await marco.remember("Ada parks her car in the cellar")
    await marco.remember("Bob drinks tea")
    hits = await memories.recall(marco.ports, marco.owner, "marco", "automobile")
    assert [(hit.memory, hit.score) for hit in hits] == [(car, 1.0)]
    [tally] = await marco.ports.recalls.stats_by_memory(marco.owner.tenant, car.agent)
    assert (tally.memory, tally.hits) == (car.id, 1)


async def test_without_a_model_only_words_find(plain: MemoryAgent) -> None:
    await plain.remember("Ada parks her car in the cellar")
    assert await plain.recall("automobile") == []


async def test_what_says_the_question_comes_before_what_only_means_it(marco: MemoryAgent) -> None:
    for text in ("a vehicle", "the automobile of Ada", "car", "my automobile is a car", "tea"):
        await marco.remember(text)
    found = await marco.recall("automobile", limit=10)
    assert set(found[:2]) == {"my automobile is a car", "the automobile of Ada"}
    assert found[2:] == ["car", "a vehicle"]
    assert (await marco.recall("the automobile of", limit=10))[0] == "the automobile of Ada"


async def test_what_says_the_question_comes_before_what_words_and_meaning_agree_on(
    marco: MemoryAgent,
) -> None:
    said = "blue automobile: tea, tea, tea and tea"
    for text in (said, "automobile in blue", "blue car"):
        await marco.remember(text)
    found = await marco.recall("blue automobile")
    assert found[0] == said
    assert set(found[1:]) == {"automobile in blue", "blue car"}


async def test_what_is_only_a_little_alike_is_not_found(marco: MemoryAgent) -> None:
    await marco.remember("blue")
    assert await marco.recall("vehicle") == []


async def test_what_has_words_and_meaning_beats_what_has_one_of_them(marco: MemoryAgent) -> None:
    for text in ("blue, the car of Bob is", "a blue hat is cheap", "an automobile"):
        await marco.remember(text)
    found = await marco.recall("is the automobile blue", limit=10)
    assert found[0] == "blue, the car of Bob is"
    assert len(found) == 3


async def test_tags_count_and_nothing_is_found_for_nothing(marco: MemoryAgent) -> None:
    await marco.remember("It stands in the cellar", tags=("car",))
    assert await marco.recall("vehicle") == ["It stands in the cellar"]
    for query in ("", "!!!", "coffee", "beverage", "x" * 10_000, "<!-- car -->"):
        found = await memories.search(marco.ports, marco.owner, "marco", query)
        assert len(found) == (query == "<!-- car -->"), query


async def test_a_question_of_half_a_character_is_answered_like_any_other(
    marco: MemoryAgent,
) -> None:
    await marco.remember("car")
    found = await memories.search(marco.ports, marco.owner, "marco", "automobile \ud800")
    assert [hit.memory.content for hit in found] == ["car"]


async def test_what_is_told_and_forgotten_is_seen_at_once(marco: MemoryAgent) -> None:
    car = await marco.remember("car")
    assert await marco.recall("vehicle") == ["car"]
    await marco.remember("automobile")
    assert sorted(await marco.recall("vehicle")) == ["automobile", "car"]
    await marco.forget(car.id)
    assert await marco.recall("vehicle") == ["automobile"]


async def test_what_another_process_forgets_meanwhile_is_not_shown(marco: MemoryAgent) -> None:
    car = await marco.remember("car")

    class Late(Model2VecIndex):
        async def nearest(self, queries: Sequence[str], *given: Any, **more: Any) -> Any:
            found = await super().nearest(queries, *given, **more)
            await marco.forget(car.id)
            return found

    ports = replace(marco.ports, semantic_index=Late(thesaurus.model()))
    assert await memories.search(ports, marco.owner, "marco", "vehicle") == ()


async def test_memories_are_read_once_for_as_long_as_none_changes(marco: MemoryAgent) -> None:
    for n in range(7):
        await marco.remember(f"car {n}")
    listed: Any = Listed(marco.ports.records)
    ports = replace(marco.ports, records=listed)

    async def found() -> int:
        return len(await memories.search(ports, marco.owner, "marco", "vehicle", limit=50))

    assert await asyncio.gather(*[found() for _ in range(5)]) == [7] * 5
    once = listed.lists
    assert 0 < once <= 2
    assert await found() == 7
    assert listed.lists == once
    await marco.remember("automobile")
    assert await found() == 8
    assert listed.lists > once


async def test_all_pages_are_compared(marco: MemoryAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic_recall, "_PAGE_SIZE", 2)
    for n in range(5):
        await marco.remember(f"car {n}")
    assert len(await marco.recall("vehicle", limit=50)) == 5


async def test_agents_and_tenants_find_only_their_own(marco: MemoryAgent) -> None:
    ports, office = marco.ports, marco.tenant
    await office.create_agent("polo", "Polo")
    polo = MemoryAgent(ports, office, "polo")
    _, stranger = await create_tenant(ports, "globex")
    other = MemoryAgent(ports, await OverlayTenant(ports, stranger).open())
    await marco.remember("car of Marco")
    await other.remember("car of a stranger")
    for found in ([], ["car of Polo"]):
        assert await marco.recall("vehicle") == ["car of Marco"]
        assert await polo.recall("vehicle") == found
        assert await other.recall("vehicle") == ["car of a stranger"]
        await polo.remember("car of Polo")


async def test_an_id_of_another_agent_is_believed_of_nobody(marco: MemoryAgent) -> None:
    await marco.tenant.create_agent("polo", "Polo")
    mine = await marco.remember("car")

    class Confused(Model2VecIndex):
        async def nearest(self, *given: Any, **more: Any) -> Any:
            return (((mine.id, 1.0),),)

    ports = replace(marco.ports, semantic_index=Confused(thesaurus.model()))
    assert len(await memories.search(ports, marco.owner, "marco", "vehicle")) == 1
    assert await memories.search(ports, marco.owner, "polo", "vehicle") == ()


async def test_in_a_shared_session_nothing_is_found_by_meaning_either(marco: MemoryAgent) -> None:
    await marco.remember("car")
    for ask in (memories.recall, memories.search):
        with pytest.raises(Forbidden):
            await ask(marco.ports, marco.owner, "marco", "vehicle", mode=Audience.SHARED)


async def test_never_very_many_are_found(marco: MemoryAgent) -> None:
    for n in range(memories.MAX_RESULTS + 5):
        await marco.remember(f"car {n}")
    assert len(await marco.recall("vehicle", limit=1000)) == memories.MAX_RESULTS
    assert await marco.recall("vehicle", limit=-1) == []
