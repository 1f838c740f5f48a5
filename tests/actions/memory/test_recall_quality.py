"""Recall finds the fact of each labelled question; `make bench ARGS=recall` measures more."""

from __future__ import annotations

import pytest
from bench import recall
from tests.support.memory_agents import create_memory_agent

from carrel.actions.memory import memories
from carrel.actions.search.search import SearchScope, search
from carrel.actions.sessions import sessions
from carrel.actions.sessions.sessions import NewEntry
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
LANGUAGES = ("en", "es", "zh", "th")


async def test_plain_questions_find_their_facts_among_wordy_memories(anywhere: Ports) -> None:
    marco = await create_memory_agent(anywhere)
    pairs = [pair for language in LANGUAGES for pair in recall.load_pairs(language)]
    wordy = [
        text for language in LANGUAGES for text in recall.make_distractors(language, "wordy", 100)
    ]
    await recall.remember_texts(
        anywhere, marco.owner, marco.tenant.agent.id, [*(fact for fact, _ in pairs), *wordy]
    )
    questions = recall.shared_questions(pairs)

    quality = await recall.measure_carrel(anywhere, marco.owner, marco.tenant.agent.id, questions)

    assert (len(pairs), len(questions)) == (300, 152)
    assert quality.recall >= recall.GOAL
    assert quality.mrr >= recall.GOAL


async def test_every_search_ranks_by_the_rarity_of_words_in_all_that_is_searched(
    anywhere: Ports,
) -> None:
    marco = await create_memory_agent(anywhere)
    owner, agent = marco.owner, marco.tenant.agent.id
    rare = [f"a kestrel was seen near the river by Ana, number {n}" for n in range(30)]
    common = [f"report report {n}" for n in range(400)]
    await recall.remember_texts(anywhere, owner, agent, [*rare, *common])
    session = await sessions.start(anywhere, owner, agent)
    for start in range(0, 430, 86):
        entries = [NewEntry("user", text) for text in [*rare, *common][start : start + 86]]
        await sessions.append(anywhere, owner, agent, session.id, entries)
    question = "kestrel report"

    hits = await memories.search(anywhere, owner, agent, question, limit=50)
    recalled = [hit.memory.content for hit in hits]
    matches = await sessions.search(anywhere, owner, agent, question)
    found_entries = [match.entry.content for match in matches]
    hits_by_kind = {
        kind: [item.text for item in (await search(anywhere, owner, question, {kind})).items]
        for kind in (SearchScope.MEMORIES, SearchScope.SESSIONS)
    }

    assert set(recalled[:30]) == set(found_entries[:30]) == set(rare)
    assert hits_by_kind == {
        SearchScope.MEMORIES: recalled[:20],
        SearchScope.SESSIONS: found_entries[:20],
    }
