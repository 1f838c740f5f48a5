"""Shared items are visible to the agents and people that share them, and to no others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path as File
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.items import actor_of_agent, create_agent, read_items
from tests.support.stores import open_ports
from tests.support.tenants import add_person, create_tenant

from carrel.actions import items
from carrel.actions.events import run_log, streams
from carrel.actions.items import ItemWriteOptions
from carrel.actions.public_cursors import FROM_START
from carrel.actions.runs import runs
from carrel.core.access import Actor
from carrel.core.errors import (
    NotFound,
)
from carrel.core.identifiers import ScopeKind
from carrel.core.items import person_items_scope
from carrel.core.store.event import WORKSPACE_UPDATED, EventFilter
from carrel.core.store.record import Record
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

PEOPLE = ("ada", "bob", "eve")
AGENT_OWNERS = st.lists(st.tuples(st.sampled_from(PEOPLE), st.booleans()), min_size=2, max_size=6)


@given(AGENT_OWNERS)
@settings(max_examples=25, deadline=None)
def test_an_item_is_visible_only_to_agents_that_share_it(
    agent_owners: Sequence[tuple[str, bool]],
) -> None:
    async def run() -> None:
        with TemporaryDirectory() as directory:
            async with open_ports(File(directory)) as ports:
                await _check_visibility(ports, agent_owners)

    asyncio.run(run())


async def _check_visibility(ports: Ports, agent_owners: Sequence[tuple[str, bool]]) -> None:
    """Each agent, shared or private, writes an item that only agents of its scope may read."""
    _, owner = await create_tenant(ports)
    person_ids = {name: (await add_person(ports, owner, name))[0].id for name in PEOPLE}
    created: list[tuple[Record, Actor, str]] = []
    for n, (person, shared) in enumerate(agent_owners):
        agent = await create_agent(
            ports, owner, f"a{n}", owner=person_ids[person], is_shared=shared
        )
        item_scope = agent.id if shared else person
        created.append((agent, await actor_of_agent(ports, owner, agent), item_scope))
    for agent, actor, _ in created:
        await items.put(ports, actor, agent.id, f"of {agent.id}", f"canary {agent.id}")
    for agent, actor, item_scope in created:
        visible = await read_items(ports, actor, agent.id)
        sharing = [other.id for other, _, other_scope in created if other_scope == item_scope]
        assert visible == {f"of {agent_id}": f"canary {agent_id}" for agent_id in sharing}
        for other, _, other_scope in created:
            if other_scope != item_scope:
                with pytest.raises(NotFound):
                    await items.get(ports, actor, agent.id, f"of {other.id}")
                with pytest.raises(NotFound):
                    await items.delete(ports, actor, agent.id, f"of {other.id}")
            if other.id != agent.id:
                with pytest.raises(NotFound):
                    await items.list_items(ports, actor, other.id)


async def test_a_persons_item_keys_are_in_no_other_persons_event_stream(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    ann, as_ann = await add_person(ports, owner, "ann")
    _, as_bob = await add_person(ports, owner, "bob")
    await create_agent(ports, owner, "cook", owner=ann.id)
    await create_agent(ports, owner, "front", is_shared=True)
    await items.put(ports, as_ann, "cook", "diagnosis", "x")
    await items.put(ports, as_ann, "front", "for-all", "x")

    async def item_scopes(actor: Actor) -> set[str]:
        log = EventFilter(actor.tenant, types=frozenset({WORKSPACE_UPDATED}))
        _, batches = await streams.listen_as(ports, actor, log, FROM_START)
        async with aclosing(batches):
            scopes = [event.scope for event in await anext(batches) if event.scope]
        return {scope.name for scope in scopes if scope.kind is ScopeKind.ITEMS}

    mine = {person_items_scope(owner.tenant, ann.id).name}
    public = await item_scopes(as_bob)
    assert public and not public & mine
    assert await item_scopes(owner) == await item_scopes(as_ann) == public | mine


async def test_a_persons_item_keys_are_in_no_other_persons_run_log(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    ann, as_ann = await add_person(ports, owner, "ann")
    _, as_bob = await add_person(ports, owner, "bob")
    cook = await create_agent(ports, owner, "cook", owner=ann.id)
    run = await runs.start(ports, as_ann, runs.RunRequest("w", agent=cook.id))
    await items.put(ports, as_ann, "cook", "diagnosis", "x", ItemWriteOptions(run=run.id))

    async def event_types(actor: Actor) -> list[tuple[str, ...]]:
        page = await run_log.poll_run(ports, actor, run)
        _, batches = await run_log.listen_to_run(ports, actor, run)
        async with aclosing(batches):
            batch = await anext(batches)
        return [tuple(event.type for event in events) for events in (page.events, batch)]

    assert (
        await event_types(as_ann)
        == await event_types(owner)
        == [("run.started", WORKSPACE_UPDATED)] * 2
    )
    assert (await run_log.poll_run(ports, as_bob, run)).events == ()
    with pytest.raises(NotFound):
        await runs.get(ports, as_bob, run.id)
