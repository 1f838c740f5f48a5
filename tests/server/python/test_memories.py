"""What an agent remembers and dreams, in a Python program."""

from __future__ import annotations

import pytest

import carrel
from carrel import Carrel

pytestmark = pytest.mark.anyio


async def test_what_is_recalled_often_is_dreamed_of_and_can_be_forgotten(desk: Carrel) -> None:
    await desk.agents.create("ada")
    ada = desk.agent("ada")
    tea = await ada.memories.remember("Bob likes\ngreen tea", tags=["drinks"], kind="user")
    assert await ada.memories.remember("Bob likes green tea") == tea
    assert (tea.content, tea.scope, tea.tags) == ("Bob likes green tea", "main", ("drinks",))
    for query in ("tea", "green te", "what does Bob like"):
        [found] = await ada.memories.recall(query)
        assert (found.id, found.score) == (tea.id, 1.0)
    assert [one.id for one in await ada.memories.search("drink")] == [tea.id]

    dry = await ada.dreams.sweep(dry_run=True)
    assert (dry.promoted, dry.rejected) == ((tea.id,), ())
    dream = await ada.dreams.sweep()
    assert (dream.status, dream.promoted) == ("done", (tea.id,))
    assert "- Bob likes green tea _(score=" in (await ada.get("MEMORY.md")).content
    assert [one.id for one in await ada.dreams.list()] == [dream.id]
    assert (await ada.dreams.get(dream.id)).promoted == (tea.id,)
    assert (await ada.memories.get(tea.id)).promoted_at == dream.started_at

    await ada.memories.forget(tea.id)
    assert await ada.memories.list() == ()
    assert "tea" not in (await ada.get("MEMORY.md")).content
    with pytest.raises(carrel.NotFound):
        await ada.memories.get(tea.id)


async def test_a_proposal_is_reviewed(desk: Carrel) -> None:
    await desk.agents.create("ada", config={"dreaming": {"review": True}})
    ada = desk.agent("ada")
    shared = await ada.memories.remember("heard in a group", scope="a group")
    assert shared.scope == "shared"
    await ada.memories.remember("Bob likes tea")
    for query in ("tea", "Bob", "likes"):
        await ada.memories.recall(query)
    first = await ada.dreams.sweep()
    assert first.status == "proposed"
    assert (await ada.dreams.reject(first.id, "not now")).status == "rejected"
    second = await ada.dreams.sweep()
    assert (await ada.dreams.approve(second.id)).status == "done"
    assert "Bob likes tea" in (await ada.get("MEMORY.md")).content
