"""Agents and the people they work for: what changes with the one changes with the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from carrel.actions.overlay.agent_layers import words
from carrel.actions.overlay.managed_files import Kin, user_files
from carrel.actions.policy.tenant_rules import Rules
from carrel.actions.records import Drafts, each, find
from carrel.core.agents.agent import USER_FILES, agent_change, facts, of_human, of_owner
from carrel.core.store.record import Change, Noun, Record
from carrel.ports import World


async def person_changed(world: World, rules: Rules, person: Record) -> Drafts:
    """USER.md of everybody who works for a person, as it becomes with the person as given."""
    agents = [one async for one in each(world, person.tenant, Noun.AGENT, of_human(person.id))]
    if not agents:
        return Drafts()
    tenant = await find(world, person.tenant, Noun.TENANT, person.tenant)
    kin = [Kin(agent, words(agent, tenant, person)) for agent in agents]
    return await user_files(world, rules, kin)


async def person_left(
    world: World, rules: Rules, person: Record
) -> tuple[Sequence[Change], Drafts]:
    """Who worked for a person now works for nobody, and their USER.md says so."""
    agents = [one async for one in each(world, person.tenant, Noun.AGENT, of_human(person.id))]
    owned = [one async for one in each(world, person.tenant, Noun.AGENT, of_owner(person.id))]
    left = {one.id: one for one in (*agents, *owned)}
    if not left:
        return (), Drafts()
    tenant = await find(world, person.tenant, Noun.TENANT, person.tenant)
    changes = [
        agent_change(one.tenant, one.id, _without(facts(one), person.id), one.revision)
        for one in left.values()
    ]
    kin = [Kin(agent, words(agent, tenant, None)) for agent in agents]
    return changes, await user_files(world, rules, kin)


def _without(known: dict[str, Any], person: str) -> dict[str, Any]:
    places = ("humanPairId", "ownerId")
    return {**known, **{place: None for place in places if known[place] == person}}


async def tenant_renamed(world: World, rules: Rules, tenant: Record) -> Drafts:
    """USER.md of every agent that has its own, as it becomes with the tenant as given."""
    agents = [one async for one in each(world, tenant.id, Noun.AGENT, USER_FILES)]
    ids = sorted({pair for agent in agents if (pair := facts(agent)["humanPairId"])})
    people = await world.records.get(tenant.id, Noun.PERSON, ids)
    known = {person.id: person for person in people if person}
    kin = [
        Kin(agent, words(agent, tenant, known.get(facts(agent)["humanPairId"]))) for agent in agents
    ]
    return await user_files(world, rules, kin) if kin else Drafts()
