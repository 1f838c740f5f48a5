"""What every Records must do when it is asked by words: the same, whatever it is made of."""

from __future__ import annotations

import pytest
from tests.support.commits import ACME, GLOBEX, NOW, commit
from tests.support.contract_stores import Ports

from carrel.core.search.full_text import query_terms
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio
MARCO, POLO = "agent:marco", "agent:polo"


async def told(
    ports: Ports, id: str, content: str, link: str = MARCO, tenant: str = ACME, tags: str = ""
) -> None:
    body = {"content": content, "tags": tags.split()}
    change = RecordChange(tenant, RecordType.MEMORY, id, body, index_keys=(link,))
    await ports.trees.commit([commit(changes=(change,), at=NOW)])


async def found(
    ports: Ports, query: str, link: str = MARCO, tenant: str = ACME, limit: int = 100
) -> list[str]:
    words = query_terms(query)
    records = await ports.records.find(tenant, RecordType.MEMORY, link, words, limit=limit)
    return [record.id for record in records]


async def test_marks_and_case_make_no_difference(ports: Ports) -> None:
    await told(ports, "m1", "Señor Müller mag Straßenbahnen")

    for query in ("senor", "MULLER", "müller", "strassenbahnen", "Straßenbahnen"):
        assert await found(ports, query) == ["m1"], query


async def test_a_word_is_found_by_its_beginning(ports: Ports) -> None:
    await told(ports, "m1", "deployment pipeline")

    assert await found(ports, "dep") == await found(ports, "deploy pipe") == ["m1"]
    assert await found(ports, "ployment") == []


async def test_scripts_without_blanks_are_found_by_any_character(ports: Ports) -> None:
    await told(ports, "m1", "会議は東京で開催")

    assert await found(ports, "東京") == await found(ports, "開") == ["m1"]


async def test_nothing_to_look_for_finds_nothing(ports: Ports) -> None:
    await told(ports, "m1", "tea")

    for query in ("", "   ", "!!! ---", "\"'*()", "\0", "%", "_", "🎉"):
        assert await found(ports, query) == [], query


async def test_what_looks_like_a_question_to_the_store_is_only_words(ports: Ports) -> None:
    await told(ports, "m1", "tea OR coffee")

    assert await found(ports, 'tea" OR "x') == ["m1"]
    assert await found(ports, "NEAR(te co)") == ["m1"]
    assert await found(ports, "'; DROP TABLE record; --") == []


async def test_tags_are_found_too(ports: Ports) -> None:
    await told(ports, "m1", "it is green", tags="Colour")

    assert await found(ports, "colour") == ["m1"]


async def test_nothing_of_another_agent_tenant_or_noun_is_found(ports: Ports) -> None:
    await told(ports, "m1", "tea")
    await told(ports, "m2", "tea", POLO)
    await told(ports, "m3", "tea", tenant=GLOBEX)
    person = RecordChange(ACME, RecordType.PERSON, "m4", {"content": "tea"}, index_keys=(MARCO,))
    await ports.trees.commit([commit(changes=(person,))])

    assert await found(ports, "tea") == ["m1"]
    assert await found(ports, "tea", POLO) == ["m2"]
    assert await found(ports, "tea", tenant=GLOBEX) == ["m3"]
    assert await found(ports, "tea", "agent:nobody") == []
    assert await ports.records.find(ACME, RecordType.PERSON, MARCO, ["tea"]) == ()


async def test_more_words_come_first_then_whole_ones_then_the_newest(ports: Ports) -> None:
    await told(ports, "m1", "portland")
    await told(ports, "m2", "port of blue")
    await told(ports, "m3", "port")
    await told(ports, "m4", "portugal")
    await told(ports, "m5", "a port")

    assert await found(ports, "port blue") == ["m2", "m5", "m3", "m4", "m1"]
    assert await found(ports, "port blue", limit=2) == ["m2", "m5"]


async def test_what_was_said_before_is_not_found_any_more(ports: Ports) -> None:
    await told(ports, "m1", "tea")
    await told(ports, "m1", "coffee")
    assert await found(ports, "tea") == []
    assert await found(ports, "coffee") == ["m1"]

    await ports.trees.commit([commit(changes=(RecordChange(ACME, RecordType.MEMORY, "m1", None),))])
    assert await found(ports, "coffee") == []


async def test_what_was_refused_is_not_found(ports: Ports) -> None:
    await told(ports, "m1", "tea")
    change = RecordChange(
        ACME, RecordType.MEMORY, "m1", {"content": "coffee"}, 7, index_keys=(MARCO,)
    )
    await ports.trees.commit([commit(changes=(change,))])

    assert await found(ports, "coffee") == []
    assert await found(ports, "tea") == ["m1"]


async def test_all_words_can_be_made_anew(ports: Ports) -> None:
    await told(ports, "m1", "tea with milk")
    await told(ports, "m2", "tea", POLO)
    for _ in range(2):
        assert await ports.upkeep.reindex() == 4
        assert await found(ports, "te mil") == ["m1"]
        assert await found(ports, "tea", POLO) == ["m2"]


async def test_agents_with_a_link_are_listed_whatever_their_tenant(ports: Ports) -> None:
    agents = [
        RecordChange(ACME, RecordType.AGENT, "a1", {}, index_keys=("dreaming",)),
        RecordChange(GLOBEX, RecordType.AGENT, "a2", {}, index_keys=("dreaming",)),
        RecordChange(GLOBEX, RecordType.AGENT, "a3", {}),
    ]
    for agent in agents:
        await ports.trees.commit([commit(changes=(agent,))])

    listed = await ports.records.list("", RecordType.AGENT, index_key="dreaming")
    assert [(one.tenant, one.id) for one in listed] == [(ACME, "a1"), (GLOBEX, "a2")]
    later = await ports.records.list("", RecordType.AGENT, index_key="dreaming", after="a1")
    assert [one.id for one in later] == ["a2"]
