"""Recall finds the fact of each labelled question; `make bench ARGS=recall` measures more."""

from __future__ import annotations

import pytest
from bench import recall
from tests.support.memory_agents import create_memory_agent

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
