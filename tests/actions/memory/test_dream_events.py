"""Events of dreams that wait for review, and of their answers."""

from __future__ import annotations

import pytest
from tests.support.memory_agents import MemoryAgent, create_memory_agent

from carrel.actions.memory import dreams
from carrel.core.store.event import DREAM_ANSWERED, DREAM_PROPOSED, EventFilter
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.fixture
async def marco(ports: Ports) -> MemoryAgent:
    return await create_memory_agent(ports)


async def _logged(marco: MemoryAgent) -> list[tuple[str, str, str]]:
    types = frozenset({DREAM_PROPOSED, DREAM_ANSWERED})
    log = await marco.ports.events.read_after(None, EventFilter(marco.owner.tenant, types=types))
    return [(event.type, event.payload["dreamId"], event.payload["status"]) for event in log]


async def test_a_proposal_and_its_answer_are_events(marco: MemoryAgent) -> None:
    await marco.set(review=True)
    await marco.learn("Ada likes tea")
    rejected = (await marco.dreams()).dream.id
    await dreams.reject(marco.ports, marco.owner, "marco", rejected)
    marco.advance()
    approved = (await marco.dreams()).dream.id
    await dreams.approve(marco.ports, marco.owner, "marco", approved)
    assert await _logged(marco) == [
        ("dream.proposed", rejected, "proposed"),
        ("dream.answered", rejected, "rejected"),
        ("dream.proposed", approved, "proposed"),
        ("dream.answered", approved, "done"),
    ]


async def test_a_dream_without_review_is_no_event(marco: MemoryAgent) -> None:
    await marco.learn("Ada likes tea")
    await marco.dreams()
    assert await _logged(marco) == []
