"""Something to look at, put there once."""

from __future__ import annotations

import pytest

from carrel.actions import agents, demos, memories, pins, runs, sessions, tenants
from carrel.core.access import Actor, Role
from carrel.ports import World

pytestmark = pytest.mark.anyio


async def test_there_is_something_of_everything_and_it_is_put_there_once(world: World) -> None:
    await tenants.bootstrap(world)
    owner = await tenants.first_owner(world, tenants.FIRST)
    assert await demos.furnish(world, owner)
    assert not await demos.furnish(world, owner)

    actor = Actor(owner.tenant, owner.id, role=Role.OWNER, person=owner.id)
    listed = await agents.listing(world, actor)
    assert [agent.body["slug"] for agent in listed.items] == ["marco", "nora", "theo"]
    waiting = [one.pin.path.text for one in await pins.status(world, actor, "marco")]
    assert "GUARDRAILS.md" in waiting
    assert any(one.pin.update_available for one in await pins.status(world, actor, "nora"))
    assert len((await runs.page(world, actor)).items) == 3
    assert (await sessions.search(world, actor, "marco", "table"))[0].utterance.number == 1
    assert len((await memories.listing(world, actor, "marco")).items) == 3
