"""Contract of full-text search in RecordStore: the same results in every store."""

from __future__ import annotations

import pytest
from tests.support.commits import ACME, GLOBEX, NOW, commit
from tests.support.contract_stores import Ports

from carrel.core.search.bm25 import TermCount, TermStatistics, TermWeight, select_terms
from carrel.core.search.full_text import parse_query
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio
MARCO, POLO = "agent:marco", "agent:polo"


async def remember(
    ports: Ports, id: str, content: str, index_key: str = MARCO, tenant: str = ACME, tags: str = ""
) -> None:
    body = {"content": content, "tags": tags.split()}
    change = RecordChange(tenant, RecordType.MEMORY, id, body, index_keys=(index_key,))
    await ports.trees.commit([commit(changes=(change,), at=NOW)])


async def search(
    ports: Ports, query: str, index_key: str = MARCO, tenant: str = ACME, limit: int = 100
) -> list[str]:
    parsed, collection = parse_query(query), (tenant, RecordType.MEMORY, index_key)
    statistics = await ports.records.count_terms(*collection, parsed.terms)
    terms = select_terms(parsed, statistics)
    records = await ports.records.find(*collection, terms, limit=limit)
    return [record.id for record in records]


async def test_accents_and_case_are_ignored(ports: Ports) -> None:
    await remember(ports, "m1", "Señor Müller mag Straßenbahnen")

    for query in ("senor", "MULLER", "müller", "strassenbahnen", "Straßenbahnen"):
        assert await search(ports, query) == ["m1"], query


async def test_a_word_matches_by_its_prefix(ports: Ports) -> None:
    await remember(ports, "m1", "deployment pipeline")

    assert await search(ports, "dep") == await search(ports, "deploy pipe") == ["m1"]
    assert await search(ports, "ployment") == []


async def test_scripts_without_spaces_match_by_any_character(ports: Ports) -> None:
    await remember(ports, "m1", "会議は東京で開催")

    assert await search(ports, "東京") == await search(ports, "開") == ["m1"]


async def test_an_empty_query_matches_nothing(ports: Ports) -> None:
    await remember(ports, "m1", "tea")

    for query in ("", "   ", "!!! ---", "\"'*()", "\0", "%", "_", "🎉"):
        assert await search(ports, query) == [], query


async def test_query_syntax_of_the_store_is_treated_as_words(ports: Ports) -> None:
    await remember(ports, "m1", "tea OR coffee")

    assert await search(ports, 'tea" OR "x') == ["m1"]
    assert await search(ports, "NEAR(te co)") == ["m1"]
    assert await search(ports, "'; DROP TABLE record; --") == []


async def test_tags_are_searched(ports: Ports) -> None:
    await remember(ports, "m1", "it is green", tags="Colour")

    assert await search(ports, "colour") == ["m1"]


async def test_results_are_confined_to_agent_tenant_and_record_type(ports: Ports) -> None:
    await remember(ports, "m1", "tea")
    await remember(ports, "m2", "tea", POLO)
    await remember(ports, "m3", "tea", tenant=GLOBEX)
    person = RecordChange(ACME, RecordType.PERSON, "m4", {"content": "tea"}, index_keys=(MARCO,))
    await ports.trees.commit([commit(changes=(person,))])

    assert await search(ports, "tea") == ["m1"]
    assert await search(ports, "tea", POLO) == ["m2"]
    assert await search(ports, "tea", tenant=GLOBEX) == ["m3"]
    assert await search(ports, "tea", "agent:none") == []
    tea = TermWeight("tea", 2, 1)
    assert await ports.records.find(ACME, RecordType.PERSON, MARCO, [tea]) == ()


async def test_results_rank_by_the_weight_of_their_terms_then_by_recency(ports: Ports) -> None:
    await remember(ports, "m1", "portland")
    await remember(ports, "m2", "port of blue")
    await remember(ports, "m3", "port")
    await remember(ports, "m4", "portugal")
    await remember(ports, "m5", "a port porter")

    assert await search(ports, "port blue") == ["m2", "m5", "m3", "m4", "m1"]
    assert await search(ports, "port blue", limit=2) == ["m2", "m5"]
    weights = [TermWeight("port", 3, 0), TermWeight("blue", 9, 9), TermWeight("portu", 1, 4)]
    records = await ports.records.find(ACME, RecordType.MEMORY, MARCO, weights)
    assert [record.id for record in records] == ["m2", "m4", "m5", "m3"]


async def test_documents_are_counted_by_term_within_their_collection(ports: Ports) -> None:
    await remember(ports, "m1", "portland tea")
    await remember(ports, "m2", "port of tea")
    await remember(ports, "m3", "port", POLO)
    await remember(ports, "m4", "port", tenant=GLOBEX)

    counted = await ports.records.count_terms(
        ACME, RecordType.MEMORY, MARCO, ["port", "tea", "milk"]
    )

    counts = {"port": TermCount(1, 2), "tea": TermCount(2, 2), "milk": TermCount(0, 0)}
    assert counted == TermStatistics(2, counts)
    nothing = await ports.records.count_terms(ACME, RecordType.MEMORY, "agent:none", [])
    assert nothing == TermStatistics(0, {})


async def test_a_rare_word_selects_more_than_many_common_ones(ports: Ports) -> None:
    texts = [f"the thing one eats is number {n}" for n in range(30)]
    for n, content in enumerate([*texts, "Luis likes pears", "we eat the thing"]):
        await remember(ports, f"m{n:02}", content)

    assert (await search(ports, "what is the thing Luis eats"))[:3] == ["m30", "m29", "m28"]
    assert (await search(ports, "what is the"))[:2] == ["m29", "m28"]


async def test_replaced_and_deleted_content_is_not_found(ports: Ports) -> None:
    await remember(ports, "m1", "tea")
    await remember(ports, "m1", "coffee")
    assert await search(ports, "tea") == []
    assert await search(ports, "coffee") == ["m1"]

    await ports.trees.commit([commit(changes=(RecordChange(ACME, RecordType.MEMORY, "m1", None),))])
    assert await search(ports, "coffee") == []


async def test_refused_content_is_not_found(ports: Ports) -> None:
    await remember(ports, "m1", "tea")
    change = RecordChange(
        ACME, RecordType.MEMORY, "m1", {"content": "coffee"}, 7, index_keys=(MARCO,)
    )
    await ports.trees.commit([commit(changes=(change,))])

    assert await search(ports, "coffee") == []
    assert await search(ports, "tea") == ["m1"]


async def test_reindexing_rebuilds_all_terms(ports: Ports) -> None:
    await remember(ports, "m1", "tea with milk")
    await remember(ports, "m2", "tea", POLO)
    for _ in range(2):
        assert await ports.upkeep.reindex() == 4
        assert await search(ports, "te mil") == ["m1"]
        assert await search(ports, "tea", POLO) == ["m2"]


async def test_agents_with_an_index_key_are_listed_across_tenants(ports: Ports) -> None:
    agents = [
        RecordChange(ACME, RecordType.AGENT, "a1", {}, index_keys=("dreaming",)),
        RecordChange(GLOBEX, RecordType.AGENT, "a2", {}, index_keys=("dreaming",)),
        RecordChange(GLOBEX, RecordType.AGENT, "a3", {}),
    ]
    for agent in agents:
        await ports.trees.commit([commit(changes=(agent,))])

    listed = await ports.records.list("", RecordType.AGENT, index_key="dreaming")
    assert [(record.tenant, record.id) for record in listed] == [(ACME, "a1"), (GLOBEX, "a2")]
    later = await ports.records.list("", RecordType.AGENT, index_key="dreaming", after="a1")
    assert [record.id for record in later] == ["a2"]
