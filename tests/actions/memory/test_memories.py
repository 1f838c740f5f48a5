"""Memories: one line of text each, searchable, and gone when forgotten."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.memory_agents import MemoryAgent, create_memory_agent
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import credentials, keys, secrets
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents
from carrel.actions.memory import memories, stats
from carrel.actions.memory.memories import NewMemory
from carrel.core.access import Actor, CredentialKind
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.memory.dream_log import DREAMS_PATH, INDEX_PATH
from carrel.core.memory.memory import MAX_CONTENT_LENGTH, MAX_QUERY_LENGTH
from carrel.core.memory.promoted_lines import MEMORY_PATH
from carrel.core.runs import Audience
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.fixture
async def marco(anywhere: Ports) -> MemoryAgent:
    return await create_memory_agent(anywhere)


async def test_a_memory_is_one_line_with_its_concepts(marco: MemoryAgent) -> None:
    memory = await marco.remember(
        " The router\n\tis in <!-- x -->\u202e the cellar ", tags=("Home",)
    )
    assert memory.content == "The router is in the cellar"
    assert memory.concepts == ("router", "cellar")
    assert (memory.tags, memory.mode, memory.promoted_at) == (("Home",), Audience.MAIN, None)
    assert await memories.get(marco.ports, marco.owner, "marco", memory.id) == memory


@pytest.mark.parametrize(
    "text", ["", " \n ", "\u200b", "<!-- x -->", "x" * (MAX_CONTENT_LENGTH + 1)]
)
async def test_an_empty_or_too_long_memory_is_refused(marco: MemoryAgent, text: str) -> None:
    with pytest.raises(ValidationError):
        await marco.remember(text)


async def test_an_unknown_kind_and_too_many_tags_are_refused(marco: MemoryAgent) -> None:
    for invalid in ({"kind": "gossip"}, {"tags": ("",)}, {"tags": tuple(map(str, range(21)))}):
        with pytest.raises(ValidationError):
            await marco.remember("tea", **invalid)


async def test_the_same_text_is_remembered_once_per_audience(marco: MemoryAgent) -> None:
    first = await marco.remember("Ada likes tea")
    new = NewMemory("Ada  likes\ntea")
    again = await memories.remember(marco.ports, marco.owner, "marco", new)
    assert (again.memory, again.created) == (first, False)
    shared = await marco.remember("Ada likes tea", Audience.SHARED)
    assert (shared.id != first.id, shared.mode) == (True, Audience.SHARED)


async def test_concurrent_remembers_of_one_text_store_it_once(marco: MemoryAgent) -> None:
    remembered = await asyncio.gather(*[marco.remember("Ada likes tea") for _ in range(8)])
    assert len({memory.id for memory in remembered}) == 1
    assert len((await memories.list_memories(marco.ports, marco.owner, "marco")).items) == 1


async def test_secrets_are_stored_neither_in_memories_nor_in_queries(marco: MemoryAgent) -> None:
    ports = marco.ports
    await secrets.put(ports, marco.owner, "door", "hunter2hunter2")
    memory = await marco.remember("the code is hunter2hunter2", tags=("hunter2hunter2",))
    assert memory.content == "the code is [REDACTED:door]"
    assert "hunter2" not in str(memory)
    await marco.recall("code hunter2hunter2", "code [REDACTED:door]")
    [stats_of_memory] = await ports.recalls.stats_by_memory(marco.owner.tenant, memory.agent)
    assert (stats_of_memory.hits, stats_of_memory.queries) == (2, 1)


async def test_recall_ranks_the_memories_and_records_the_scores(marco: MemoryAgent) -> None:
    port = await marco.remember("The port is 8080")
    portland = await marco.remember("Ada lives in Portland")
    await marco.remember("unrelated")

    hits = await memories.recall(marco.ports, marco.owner, "marco", "port")

    assert [hit.memory.id for hit in hits] == [port.id, portland.id]
    scores = {hit.memory.id: hit.score for hit in hits}
    assert scores[port.id] > 0.9
    assert 0.1 < scores[portland.id] < 0.5
    all_stats = await marco.ports.recalls.stats_by_memory(marco.owner.tenant, port.agent)
    assert {item.memory: item.relevance for item in all_stats} == scores


async def test_a_question_finds_the_only_memory_that_names_its_subject(marco: MemoryAgent) -> None:
    for n in range(60):
        await marco.remember(f"it is the thing that one must not forget, number {n}")
    await marco.remember("Luis is allergic to peanuts")
    await marco.remember("we eat at noon")
    question = "what is the thing Luis must not eat"
    recalled = await marco.recall(question)
    assert set(recalled[:2]) == {"Luis is allergic to peanuts", "we eat at noon"}


async def test_recall_returns_five_by_default_and_at_most_the_maximum(marco: MemoryAgent) -> None:
    for n in range(60):
        await marco.remember(f"tea number {n}")
    assert len(await marco.recall("tea")) == 5
    assert len(await marco.recall("tea", limit=1000)) == memories.MAX_RESULTS
    assert await marco.recall("tea", limit=-1) == []


async def test_a_search_records_no_recall_and_an_empty_query_matches_nothing(
    marco: MemoryAgent,
) -> None:
    memory = await marco.remember("tea")
    hits = await memories.search(marco.ports, marco.owner, "marco", "tea")
    assert [hit.memory for hit in hits] == [memory]
    for query in ("", "!!!", "coffee", "x" * 10_000):
        assert await marco.recall(query) == []
    assert await marco.ports.recalls.stats_by_memory(marco.owner.tenant, memory.agent) == ()


async def test_a_long_query_is_recorded_truncated(marco: MemoryAgent) -> None:
    memory = await marco.remember("tea")
    await marco.recall("tea " + "x" * MAX_QUERY_LENGTH, "tea " + "x" * (MAX_QUERY_LENGTH + 5))
    [stats_of_memory] = await marco.ports.recalls.stats_by_memory(marco.owner.tenant, memory.agent)
    assert (stats_of_memory.hits, stats_of_memory.queries) == (2, 1)


async def test_recall_is_forbidden_for_a_shared_audience(marco: MemoryAgent) -> None:
    await marco.remember("tea")
    for operation in (memories.recall, memories.search):
        with pytest.raises(Forbidden):
            await operation(marco.ports, marco.owner, "marco", "tea", mode=Audience.SHARED)


async def test_a_forgotten_memory_is_not_found(marco: MemoryAgent) -> None:
    memory = await marco.remember("tea")
    await marco.recall("tea")
    await marco.forget(memory.id)

    assert await marco.recall("tea") == []
    assert await marco.ports.recalls.stats_by_memory(marco.owner.tenant, memory.agent) == ()
    with pytest.raises(NotFound):
        await marco.forget(memory.id)
    assert (await marco.remember("tea")).id != memory.id


async def test_forgetting_removes_the_promoted_line_in_the_same_commit(
    marco: MemoryAgent,
) -> None:
    await marco.write("# Mine\n\n- my own line\n")
    tea, milk = await marco.learn("Ada likes tea"), await marco.learn("Bob likes milk")
    await marco.dreams()
    own = (await marco.tenant.agent_stack())[0]
    before = await marco.ports.trees.revisions([own])

    await marco.forget(tea.id)

    assert await marco.ports.trees.revisions([own]) == (before[0] + 1,)
    text, log, index = [await marco.read(path) for path in (MEMORY_PATH, DREAMS_PATH, INDEX_PATH)]
    assert text
    assert "tea" not in f"{text}{log}{index}"
    assert "Bob likes milk" in text
    assert index and tea.id not in index and milk.id in index
    [promotion] = await marco.ports.records.get(own.tenant, RecordType.PROMOTION, [tea.id])
    assert promotion is None
    await marco.forget(milk.id)
    assert await marco.read() == "# Mine\n\n- my own line\n"


async def test_a_memory_takes_the_place_of_the_one_it_supersedes(marco: MemoryAgent) -> None:
    tea, _ = await marco.learn("Ada likes tea"), await marco.learn("Bob likes milk")
    await marco.dreams()
    before = await marco.read()

    new = NewMemory("Ada likes coffee", supersedes=tea.id)
    coffee = (await memories.remember(marco.ports, marco.owner, "marco", new)).memory

    assert before and await marco.read() == before.replace("Ada likes tea", "Ada likes coffee")
    log, index = await marco.read(DREAMS_PATH), await marco.read(INDEX_PATH)
    assert log and "coffee" in log and "tea" not in log
    assert index and coffee.id in index and tea.id not in index
    assert (
        coffee.promoted_at
        == (await memories.get(marco.ports, marco.owner, "marco", coffee.id)).promoted_at
        is not None
    )
    assert (await marco.recall("what does Ada like"))[0] == "Ada likes coffee"
    with pytest.raises(NotFound):
        await memories.get(marco.ports, marco.owner, "marco", tea.id)
    await marco.forget(coffee.id)
    text = await marco.read()
    assert text and "Ada" not in text and "Bob" in text


async def test_superseding_needs_an_existing_memory_that_the_session_may_see(
    marco: MemoryAgent,
) -> None:
    tea, milk = await marco.remember("Ada likes tea"), await marco.remember("Bob likes milk")
    for new in (
        NewMemory("Ada likes coffee", supersedes="mem_none"),
        NewMemory("Ada likes coffee", mode=Audience.SHARED, supersedes=tea.id),
    ):
        with pytest.raises(NotFound):
            await memories.remember(marco.ports, marco.owner, "marco", new)
    same = NewMemory("Bob likes milk", supersedes=tea.id)
    result = await memories.remember(marco.ports, marco.owner, "marco", same)
    assert (result.memory.id, result.created) == (milk.id, False)
    assert [
        item.id for item in (await memories.list_memories(marco.ports, marco.owner, "marco")).items
    ] == [milk.id]


async def test_forgetting_never_removes_a_line_that_a_person_edited(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    await marco.dreams()
    text = await marco.read()
    assert text
    line = next(line for line in text.splitlines() if "tea" in line)
    mine = f"{line}\n\n" + text.replace(line, line + " (green)")
    await marco.write(mine)

    await marco.forget(tea.id)

    assert await marco.read() == mine


async def test_agents_and_tenants_have_separate_memories(marco: MemoryAgent) -> None:
    ports, tenant = marco.ports, marco.tenant
    polo = await tenant.create_agent("polo", "Polo")
    memory = await marco.remember("tea")
    assert await MemoryAgent(ports, tenant, "polo").recall("tea") == []
    for name in ("polo", polo.id):
        with pytest.raises(NotFound):
            await memories.forget(ports, marco.owner, name, memory.id)
    _, stranger = await create_tenant(ports, "globex")
    for name in ("marco", memory.agent):
        with pytest.raises(NotFound):
            await memories.get(ports, stranger, name, memory.id)
    assert await marco.recall("tea") == ["tea"]


async def test_a_key_or_a_member_reaches_only_their_own_agent(
    marco: MemoryAgent,
) -> None:
    ports, tenant = marco.ports, marco.tenant
    polo = await tenant.create_agent("polo", "Polo")
    spec = KeySpec("a key", CredentialKind.AGENT, agent=polo.id)
    issued = await keys.create(ports, marco.owner, spec)
    bound: Actor = await credentials.authenticate(ports, issued.token)
    with pytest.raises(NotFound):
        await memories.remember(ports, bound, "marco", NewMemory("tea"))
    remembered = await memories.remember(ports, bound, "polo", NewMemory("tea"))
    await memories.forget(ports, bound, "polo", remembered.memory.id)
    _, member = await add_person(ports, marco.owner, "bob")
    with pytest.raises(Forbidden):
        await memories.remember(ports, member, "marco", NewMemory("tea"))
    with pytest.raises(Forbidden):
        await memories.list_memories(ports, member, "marco")
    await agents.patch(ports, marco.owner, "marco", {"owner_id": member.person})
    own = await memories.remember(ports, member, "marco", NewMemory("tea"))
    assert (await memories.list_memories(ports, member, "marco")).items == (own.memory,)
    await memories.forget(ports, member, "marco", own.memory.id)


async def test_memories_are_listed_in_pages(marco: MemoryAgent) -> None:
    remembered = [await marco.remember(f"tea {n}") for n in range(5)]
    first = await memories.list_memories(marco.ports, marco.owner, "marco", limit=3)
    assert first.next
    rest = await memories.list_memories(
        marco.ports, marco.owner, "marco", cursor=first.next, limit=3
    )
    assert (*first.items, *rest.items) == tuple(remembered)
    assert rest.next is None


async def test_memory_changes_keep_the_record_revision_and_are_not_audited(
    marco: MemoryAgent,
) -> None:
    records = marco.ports.records
    before, audit = await records.revision(), await records.audit(marco.owner.tenant)
    read = "read memories of a private agent"
    tea = await marco.learn("tea")
    await marco.dreams()
    await marco.forget(tea.id)
    assert await records.revision() == before
    entries = await records.audit(marco.owner.tenant)
    assert tuple(entry for entry in entries if entry.reason != read) == audit


async def test_stats_count_memories_promotions_and_recent_recalls(marco: MemoryAgent) -> None:
    tea = await marco.learn("Tea ceremony in Kyoto")
    await marco.remember("Router reboot")
    marco.advance()
    await marco.dreams()
    now = marco.ports.clock.now()
    current = await stats.load_stats(marco.ports, marco.owner, tea.agent)
    assert (current.memories, current.promoted, current.recalls_7d) == (2, 1, 3)
    assert current.last_dream and now - current.last_dream < 60_000
    assert current.top_concepts_7d == (("ceremony", 3), ("kyoto", 3), ("tea", 3))
    shared = await stats.load_stats(marco.ports, marco.owner, tea.agent, Audience.SHARED)
    assert (shared.recalls_7d, shared.top_concepts_7d) == (3, ())
    advance_clock(marco.ports, 10**9)
    later = await stats.load_stats(marco.ports, marco.owner, tea.agent)
    assert (later.recalls_7d, later.top_concepts_7d) == (0, ())


async def test_deleting_an_agent_deletes_its_memories(marco: MemoryAgent) -> None:
    ports, tenant = marco.ports, marco.owner.tenant
    tea = await marco.learn("Ada likes tea")
    await marco.dreams()
    await marco.tenant.create_agent("polo", "Polo")
    other = await MemoryAgent(ports, marco.tenant, "polo").remember("tea")
    await agents.delete(ports, marco.owner, "marco")
    for record_type in (RecordType.MEMORY, RecordType.PROMOTION, RecordType.DREAM):
        remaining = await ports.records.list(tenant, record_type)
        assert [record.id for record in remaining] == (
            [other.id] if record_type is RecordType.MEMORY else []
        )
    assert await ports.recalls.stats_by_memory(tenant, tea.agent) == ()
