"""Layers, file resolver and placeholder values of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.accounts import person_from_record, tenant_from_record
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import ScopeKind, Stack, parse_identifier
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports


class AgentLayers(Struct, frozen=True):
    agent: Record
    stack: Stack
    resolver: AgentFileResolver
    key: str
    """Changes with everything that affects how the agent's files are rendered."""


async def load_agent_layers(ports: Ports, tenant: str, id: str) -> AgentLayers:
    """Load an agent's layers, cached until a record changes. Raises NotFound."""
    revision = await ports.records.revision()
    agent_layers: AgentLayers | None = ports.record_cache.get(
        revision, ("agent_layers", tenant, id)
    )
    if agent_layers is None:
        agent: Record | None = ports.record_cache.get(revision, (tenant, RecordType.AGENT, id))
        agents = (
            [agent]
            if agent
            else await _load_records(ports, tenant, RecordType.AGENT, [_require_valid_id(id)])
        )
        agent_layers = (await _load_and_cache(ports, revision, tenant, agents)).get(id)
    if agent_layers is None:
        raise NotFound(f"no such {RecordType.AGENT}: {id}")
    return agent_layers


async def load_many_agent_layers(
    ports: Ports, tenant: str, ids: Sequence[str]
) -> Mapping[str, AgentLayers]:
    """Load the layers of many agents by id; omits deleted agents.

    The number of queries does not depend on the number of agents.
    """
    revision = await ports.records.revision()
    cached = {id: ports.record_cache.get(revision, ("agent_layers", tenant, id)) for id in ids}
    by_id: dict[str, AgentLayers] = {
        id: agent_layers for id, agent_layers in cached.items() if agent_layers
    }
    missing_ids = [id for id in cached if id not in by_id]
    if missing_ids:
        agents = await _load_records(ports, tenant, RecordType.AGENT, missing_ids)
        by_id |= await _load_and_cache(ports, revision, tenant, agents)
    return by_id


async def _load_and_cache(
    ports: Ports, revision: int, tenant: str, agents: Sequence[Record]
) -> Mapping[str, AgentLayers]:
    classes = (await load_rules(ports, tenant)).policy.classes
    tenant_record = ports.record_cache.get(revision, (tenant, RecordType.TENANT, tenant))
    if tenant_record is None:
        tenant_record = next(
            iter(await _load_records(ports, tenant, RecordType.TENANT, [tenant])), None
        )
    pairs = [agent_from_record(agent).human_pair_id for agent in agents]
    person_ids = sorted({pair for pair in pairs if pair})
    people = await ports.records.get(tenant, RecordType.PERSON, person_ids) if person_ids else ()
    humans = {person.id: person for person in people if person}
    by_id: dict[str, AgentLayers] = {}
    for agent, pair in zip(agents, pairs, strict=True):
        variables = placeholder_values(agent, tenant_record, humans.get(pair or ""))
        resolver = AgentFileResolver(classes, variables)
        by_id[agent.id] = agent_layers = AgentLayers(
            agent, build_stack(agent), resolver, resolver.key
        )
        ports.record_cache.put(revision, ("agent_layers", tenant, agent.id), agent_layers)
    return by_id


async def _load_records(
    ports: Ports, tenant: str, record_type: RecordType, ids: Sequence[str]
) -> Sequence[Record]:
    """Load existing records, cached until a record changes."""
    revision = await ports.records.revision()
    cached = {id: ports.record_cache.get(revision, (tenant, record_type, id)) for id in ids}
    missing_ids = [id for id, record in cached.items() if record is None]
    for record in await ports.records.get(tenant, record_type, missing_ids) if missing_ids else ():
        if record is not None:
            cached[record.id] = record
            ports.record_cache.put(revision, (tenant, record_type, record.id), record)
    return [record for record in cached.values() if record]


def _require_valid_id(id: str) -> str:
    try:
        return parse_identifier(id)
    except ValidationError:
        raise NotFound(f"no such {RecordType.AGENT}") from None


async def load_resolver(ports: Ports, stack: Stack) -> AgentFileResolver | None:
    """Load the file resolver of an agent's workspace; None for other workspaces."""
    scope = stack[0]
    if scope.kind is not ScopeKind.AGENT:
        return None
    return (await load_agent_layers(ports, scope.tenant, scope.name)).resolver


async def load_classes(ports: Ports, stack: Stack) -> FileClassRules | None:
    """Load the file class rules for templates and defaults; None for other workspaces."""
    if stack[0].kind not in {ScopeKind.TEMPLATE, ScopeKind.DEFAULTS}:
        return None
    return (await load_rules(ports, stack[0].tenant)).policy.classes


async def load_placeholder_values(
    ports: Ports, agent: Record, human: Record | None = None
) -> PlaceholderValues:
    """Load the placeholder values of an agent; `human` overrides its stored human."""
    [tenant] = await ports.records.get(agent.tenant, RecordType.TENANT, [agent.tenant])
    pair = agent_from_record(agent).human_pair_id
    if human is None and pair:
        [human] = await ports.records.get(agent.tenant, RecordType.PERSON, [pair])
    return placeholder_values(agent, tenant, human)


async def load_many_placeholder_values(
    ports: Ports, tenant: str, agents: Sequence[Record]
) -> tuple[PlaceholderValues, ...]:
    """Load the placeholder values of each agent, with two queries."""
    [tenant_record] = await ports.records.get(tenant, RecordType.TENANT, [tenant])
    pairs = [agent_from_record(agent).human_pair_id for agent in agents]
    ids = sorted({pair for pair in pairs if pair})
    people = await ports.records.get(tenant, RecordType.PERSON, ids) if ids else ()
    humans = {person.id: person for person in people if person}
    return tuple(
        placeholder_values(agent, tenant_record, humans.get(pair or ""))
        for agent, pair in zip(agents, pairs, strict=True)
    )


def placeholder_values(
    agent: Record, tenant: Record | None, human: Record | None
) -> PlaceholderValues:
    values = PlaceholderValues(
        agent_name=agent_from_record(agent).name,
        tenant_name=tenant_from_record(tenant).name if tenant else None,
    )
    if human is None:
        return values
    person = person_from_record(human)
    return replace(
        values,
        human_name=person.name,
        human_email=person.email,
        human_title=person.title,
        human_timezone=person.timezone,
        human_pronouns=person.pronouns,
    )
