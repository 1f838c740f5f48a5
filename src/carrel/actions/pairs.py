"""Agents and the people they work for: what changes with the one changes with the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from carrel.actions.lineages import words
from carrel.actions.managed import Kin, user_files
from carrel.actions.records import Drafts, each, find
from carrel.actions.rules import Rules
from carrel.actions.templates import of_template
from carrel.core.record import Change, Noun, Record, handle
from carrel.ports import World

USER_FILES: Final = "user-file"
"""The link under which the agents are listed that have a USER.md of their own."""

_BLANK: Final[Mapping[str, Any]] = {
    "humanPairId": None,
    "isShared": False,
    "ownerId": None,
    "config": {},
    "userFile": False,
}


def of_human(id: str) -> str:
    """The link under which the agents are listed that work for a person."""
    return f"human:{id}"


def facts(agent: Record) -> dict[str, Any]:
    """What is known of an agent, also of one that is older than some of these facts."""
    return {**_BLANK, **agent.body}


def agent_change(tenant: str, id: str, body: Mapping[str, Any], expected: int) -> Change:
    """An agent as it should become, with the names that follow from that."""
    links = [of_template(body["templateId"])] if body["templateId"] else []
    links += [of_human(body["humanPairId"])] if body["humanPairId"] else []
    links += [USER_FILES] if body["userFile"] else []
    slug = handle(tenant, Noun.AGENT, "slug", body["slug"])
    return Change(tenant, Noun.AGENT, id, body, expected, handles=(slug,), links=tuple(links))


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
    if not agents:
        return (), Drafts()
    tenant = await find(world, person.tenant, Noun.TENANT, person.tenant)
    changes = [
        agent_change(one.tenant, one.id, {**facts(one), "humanPairId": None}, one.revision)
        for one in agents
    ]
    kin = [Kin(agent, words(agent, tenant, None)) for agent in agents]
    return changes, await user_files(world, rules, kin)


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
