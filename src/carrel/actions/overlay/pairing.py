"""Agents and the people they work for: what changes with the one changes with the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from carrel.actions.overlay.agent_layers import placeholder_values
from carrel.actions.overlay.managed_files import AgentWithVariables, user_files
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import FileDrafts, find, iter_records
from carrel.core.agents.agent import (
    USER_FILES,
    agent_change,
    agent_fields,
    by_human_index,
    by_owner_index,
)
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports


async def person_changed(ports: Ports, rules: TenantRules, person: Record) -> FileDrafts:
    """USER.md of everybody who works for a person, as it becomes with the person as given."""
    agents = [
        one
        async for one in iter_records(
            ports, person.tenant, RecordType.AGENT, by_human_index(person.id)
        )
    ]
    if not agents:
        return FileDrafts()
    tenant = await find(ports, person.tenant, RecordType.TENANT, person.tenant)
    kin = [AgentWithVariables(agent, placeholder_values(agent, tenant, person)) for agent in agents]
    return await user_files(ports, rules, kin)


async def person_left(
    ports: Ports, rules: TenantRules, person: Record
) -> tuple[Sequence[RecordChange], FileDrafts]:
    """Who worked for a person now works for nobody, and their USER.md says so."""
    agents = [
        one
        async for one in iter_records(
            ports, person.tenant, RecordType.AGENT, by_human_index(person.id)
        )
    ]
    owned = [
        one
        async for one in iter_records(
            ports, person.tenant, RecordType.AGENT, by_owner_index(person.id)
        )
    ]
    left = {one.id: one for one in (*agents, *owned)}
    if not left:
        return (), FileDrafts()
    tenant = await find(ports, person.tenant, RecordType.TENANT, person.tenant)
    changes = [
        agent_change(one.tenant, one.id, _without(agent_fields(one), person.id), one.revision)
        for one in left.values()
    ]
    kin = [AgentWithVariables(agent, placeholder_values(agent, tenant, None)) for agent in agents]
    return changes, await user_files(ports, rules, kin)


def _without(known: dict[str, Any], person: str) -> dict[str, Any]:
    places = ("humanPairId", "ownerId")
    return {**known, **{place: None for place in places if known[place] == person}}


async def tenant_renamed(ports: Ports, rules: TenantRules, tenant: Record) -> FileDrafts:
    """USER.md of every agent that has its own, as it becomes with the tenant as given."""
    agents = [one async for one in iter_records(ports, tenant.id, RecordType.AGENT, USER_FILES)]
    ids = sorted({pair for agent in agents if (pair := agent_fields(agent)["humanPairId"])})
    people = await ports.records.get(tenant.id, RecordType.PERSON, ids)
    known = {person.id: person for person in people if person}
    kin = [
        AgentWithVariables(
            agent, placeholder_values(agent, tenant, known.get(agent_fields(agent)["humanPairId"]))
        )
        for agent in agents
    ]
    return await user_files(ports, rules, kin) if kin else FileDrafts()
