"""What every Records must do when it is asked by words: the same, whatever it is made of."""

from __future__ import annotations

import pytest
from tests.contract.households import upkeep
from tests.contract.scenes import ACME, GLOBEX, NOW, commit
from tests.contract.worlds import World

from carrel.core.search.full_text import query_terms
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio
MARCO, POLO = "agent:marco", "agent:polo"


async def told(
    world: World, id: str, content: str, link: str = MARCO, tenant: str = ACME, tags: str = ""
) -> None:
    body = {"content": content, "tags": tags.split()}
    change = RecordChange(tenant, RecordType.MEMORY, id, body, links=(link,))
    await world.trees.commit([commit(changes=(change,), at=NOW)])


async def found(
    world: World, query: str, link: str = MARCO, tenant: str = ACME, limit: int = 100
) -> list[str]:
    words = query_terms(query)
    records = await world.records.find(tenant, RecordType.MEMORY, link, words, limit=limit)
    return [record.id for record in records]


async def test_marks_and_case_make_no_difference(world: World) -> None:
    await told(world, "m1", "Señor Müller mag Straßenbahnen")

    for query in ("senor", "MULLER", "müller", "strassenbahnen", "Straßenbahnen"):
        assert await found(world, query) == ["m1"], query


async def test_a_word_is_found_by_its_beginning(world: World) -> None:
    await told(world, "m1", "deployment pipeline")

    assert await found(world, "dep") == await found(world, "deploy pipe") == ["m1"]
    assert await found(world, "ployment") == []


async def test_scripts_without_blanks_are_found_by_any_character(world: World) -> None:
    await told(world, "m1", "会議は東京で開催")

    assert await found(world, "東京") == await found(world, "開") == ["m1"]


async def test_nothing_to_look_for_finds_nothing(world: World) -> None:
    await told(world, "m1", "tea")

    for query in ("", "   ", "!!! ---", "\"'*()", "\0", "%", "_", "🎉"):
        assert await found(world, query) == [], query


async def test_what_looks_like_a_question_to_the_store_is_only_words(world: World) -> None:
    await told(world, "m1", "tea OR coffee")

    assert await found(world, 'tea" OR "x') == ["m1"]
    assert await found(world, "NEAR(te co)") == ["m1"]
    assert await found(world, "'; DROP TABLE record; --") == []


async def test_tags_are_found_too(world: World) -> None:
    await told(world, "m1", "it is green", tags="Colour")

    assert await found(world, "colour") == ["m1"]


async def test_nothing_of_another_agent_tenant_or_noun_is_found(world: World) -> None:
    await told(world, "m1", "tea")
    await told(world, "m2", "tea", POLO)
    await told(world, "m3", "tea", tenant=GLOBEX)
    person = RecordChange(ACME, RecordType.PERSON, "m4", {"content": "tea"}, links=(MARCO,))
    await world.trees.commit([commit(changes=(person,))])

    assert await found(world, "tea") == ["m1"]
    assert await found(world, "tea", POLO) == ["m2"]
    assert await found(world, "tea", tenant=GLOBEX) == ["m3"]
    assert await found(world, "tea", "agent:nobody") == []
    assert await world.records.find(ACME, RecordType.PERSON, MARCO, ["tea"]) == ()


async def test_more_words_come_first_then_whole_ones_then_the_newest(world: World) -> None:
    await told(world, "m1", "portland")
    await told(world, "m2", "port of blue")
    await told(world, "m3", "port")
    await told(world, "m4", "portugal")
    await told(world, "m5", "a port")

    assert await found(world, "port blue") == ["m2", "m5", "m3", "m4", "m1"]
    assert await found(world, "port blue", limit=2) == ["m2", "m5"]


async def test_what_was_said_before_is_not_found_any_more(world: World) -> None:
    await told(world, "m1", "tea")
    await told(world, "m1", "coffee")
    assert await found(world, "tea") == []
    assert await found(world, "coffee") == ["m1"]

    await world.trees.commit([commit(changes=(RecordChange(ACME, RecordType.MEMORY, "m1", None),))])
    assert await found(world, "coffee") == []


async def test_what_was_refused_is_not_found(world: World) -> None:
    await told(world, "m1", "tea")
    change = RecordChange(ACME, RecordType.MEMORY, "m1", {"content": "coffee"}, 7, links=(MARCO,))
    await world.trees.commit([commit(changes=(change,))])

    assert await found(world, "coffee") == []
    assert await found(world, "tea") == ["m1"]


@pytest.mark.parametrize("world", ["sqlite", "postgres"], indirect=True)
async def test_all_words_can_be_made_anew(world: World) -> None:
    await told(world, "m1", "tea with milk")
    await told(world, "m2", "tea", POLO)
    for _ in range(2):
        assert await upkeep(world).reindex() == 4
        assert await found(world, "te mil") == ["m1"]
        assert await found(world, "tea", POLO) == ["m2"]


async def test_agents_with_a_link_are_listed_whatever_their_tenant(world: World) -> None:
    agents = [
        RecordChange(ACME, RecordType.AGENT, "a1", {}, links=("dreaming",)),
        RecordChange(GLOBEX, RecordType.AGENT, "a2", {}, links=("dreaming",)),
        RecordChange(GLOBEX, RecordType.AGENT, "a3", {}),
    ]
    for agent in agents:
        await world.trees.commit([commit(changes=(agent,))])

    listed = await world.records.list("", RecordType.AGENT, link="dreaming")
    assert [(one.tenant, one.id) for one in listed] == [(ACME, "a1"), (GLOBEX, "a2")]
    later = await world.records.list("", RecordType.AGENT, link="dreaming", after="a1")
    assert [one.id for one in later] == ["a2"]
