"""Edits of a memory: it keeps its id and recalls, and its line in MEMORY.md follows."""

from __future__ import annotations

import pytest
from tests.support.memory_agents import MemoryAgent, create_memory_agent

from carrel.actions.accounts import audit
from carrel.actions.memory import dreams, memories, memory_edits
from carrel.actions.memory.memory_edits import MemoryEdit
from carrel.core.errors import Conflict, NotFound
from carrel.core.memory.dream_records import DreamStatus
from carrel.core.memory.memory import Memory
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.fixture
async def marco(anywhere: Ports) -> MemoryAgent:
    return await create_memory_agent(anywhere)


async def _edit(marco: MemoryAgent, id: str, **fields: object) -> Memory:
    changes = MemoryEdit(**fields)  # type: ignore[arg-type]
    return await memory_edits.edit(marco.ports, marco.owner, "marco", id, changes)


async def test_an_edited_memory_is_found_by_its_new_words_under_the_same_id(
    marco: MemoryAgent,
) -> None:
    tea = await marco.remember("Ada likes tea", tags=("drinks",))
    edited = await _edit(marco, tea.id, content="Ada likes\ncoffee", kind="user")
    assert (edited.id, edited.content, edited.kind) == (tea.id, "Ada likes coffee", "user")
    assert (edited.tags, edited.created_at) == (("drinks",), tea.created_at)
    assert await marco.recall("coffee") == ["Ada likes coffee"]
    assert await marco.recall("tea") == []
    stored = await memories.get(marco.ports, marco.owner, "marco", tea.id)
    assert stored == edited


async def test_the_promoted_line_of_an_edited_memory_follows(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    await marco.dreams()
    await _edit(marco, tea.id, content="Ada likes coffee")
    text = await marco.read() or ""
    assert "Ada likes coffee" in text
    assert "tea" not in text
    marco.advance()
    assert (await marco.dreams()).dream.promoted == ()
    await memories.forget(marco.ports, marco.owner, "marco", tea.id)
    assert "coffee" not in (await marco.read() or "")


async def test_an_edit_ends_a_proposal_that_quotes_the_memory(marco: MemoryAgent) -> None:
    await marco.set(review=True)
    tea = await marco.learn("Ada likes tea")
    proposed = await marco.dreams()
    await _edit(marco, tea.id, content="Ada likes coffee")
    current = await dreams.get(marco.ports, marco.owner, "marco", proposed.dream.id)
    assert current.dream.status is DreamStatus.SUPERSEDED


async def test_a_text_is_not_stored_twice_and_an_unknown_memory_is_absent(
    marco: MemoryAgent,
) -> None:
    tea, milk = await marco.remember("Ada likes tea"), await marco.remember("Bob likes milk")
    with pytest.raises(Conflict):
        await _edit(marco, milk.id, content=tea.content)
    with pytest.raises(NotFound):
        await _edit(marco, "mem_none", content="Ada")
    assert await _edit(marco, tea.id) == tea


async def test_an_edit_is_in_the_audit_log(marco: MemoryAgent) -> None:
    tea = await marco.remember("Ada likes tea")
    await _edit(marco, tea.id, content="Ada likes coffee")
    page = await audit.list_audit_entries(marco.ports, marco.owner)
    newest = page.items[0]
    assert (newest.reason, newest.author) == ("edit a memory", marco.owner.name)
