"""Follow-up changes of agents when their person or tenant changes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from carrel.actions.overlay.agent_layers import placeholder_values
from carrel.actions.overlay.managed_files import AgentWithVariables, draft_user_files
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import FileDrafts, get_record, iter_records
from carrel.core.agents.agent import (
    USER_FILE_INDEX,
    AgentRecord,
    agent_change,
    agent_from_record,
    by_human_index,
    by_owner_index,
)
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports


async def draft_person_changed(ports: Ports, rules: TenantRules, person: Record) -> FileDrafts:
    """Draft USER.md of all agents paired with a person, from the changed person."""
    agents = [
        agent_record
        async for agent_record in iter_records(
            ports, person.tenant, RecordType.AGENT, by_human_index(person.id)
        )
    ]
    if not agents:
        return FileDrafts()
    tenant = await get_record(ports, person.tenant, RecordType.TENANT, person.tenant)
    paired_agents = [
        AgentWithVariables(agent, placeholder_values(agent, tenant, person)) for agent in agents
    ]
    return await draft_user_files(ports, rules, paired_agents)


async def draft_person_removed(
    ports: Ports, rules: TenantRules, person: Record
) -> tuple[Sequence[RecordChange], FileDrafts]:
    """Remove a deleted person from their agents, and redraft their USER.md."""
    agents = [
        agent_record
        async for agent_record in iter_records(
            ports, person.tenant, RecordType.AGENT, by_human_index(person.id)
        )
    ]
    owned = [
        agent_record
        async for agent_record in iter_records(
            ports, person.tenant, RecordType.AGENT, by_owner_index(person.id)
        )
    ]
    affected = {agent_record.id: agent_record for agent_record in (*agents, *owned)}
    if not affected:
        return (), FileDrafts()
    tenant = await get_record(ports, person.tenant, RecordType.TENANT, person.tenant)
    changes = [
        agent_change(
            agent_record.tenant,
            agent_record.id,
            _without_person(agent_from_record(agent_record), person.id),
            agent_record,
        )
        for agent_record in affected.values()
    ]
    paired_agents = [
        AgentWithVariables(agent, placeholder_values(agent, tenant, None)) for agent in agents
    ]
    return changes, await draft_user_files(ports, rules, paired_agents)


def _without_person(agent: AgentRecord, person: str) -> AgentRecord:
    return replace(
        agent,
        human_pair_id=None if agent.human_pair_id == person else agent.human_pair_id,
        owner_id=None if agent.owner_id == person else agent.owner_id,
    )


async def draft_tenant_renamed(ports: Ports, rules: TenantRules, tenant: Record) -> FileDrafts:
    """Draft USER.md of every agent that has one, from the renamed tenant."""
    agents = [
        agent_record
        async for agent_record in iter_records(ports, tenant.id, RecordType.AGENT, USER_FILE_INDEX)
    ]
    pairs = [agent_from_record(agent).human_pair_id for agent in agents]
    ids = sorted({pair for pair in pairs if pair})
    people = await ports.records.get(tenant.id, RecordType.PERSON, ids)
    people_by_id = {person.id: person for person in people if person}
    agents_with_files = [
        AgentWithVariables(agent, placeholder_values(agent, tenant, people_by_id.get(pair or "")))
        for agent, pair in zip(agents, pairs, strict=True)
    ]
    return (
        await draft_user_files(ports, rules, agents_with_files)
        if agents_with_files
        else FileDrafts()
    )
