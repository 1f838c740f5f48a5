"""What an agent descends from: its layers, and the words that its placeholders stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import ScopeKind, Stack, identifier
from carrel.core.overlay.agent_files import RenderContext
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.overlay.layers import stack_of
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports


class AgentLayers(Struct, frozen=True):
    agent: Record
    stack: Stack
    eye: RenderContext
    key: str
    """Changes when anything does that is seen differently through its eye."""


async def load_agent_layers(ports: Ports, tenant: str, id: str) -> AgentLayers:
    """Asked once for as long as no record changes. Raises Missing."""
    revision = await ports.records.revision()
    found: AgentLayers | None = ports.record_cache.get(revision, ("lineage", tenant, id))
    if found is None:
        agent: Record | None = ports.record_cache.get(revision, (tenant, RecordType.AGENT, id))
        agents = (
            [agent] if agent else await _records(ports, tenant, RecordType.AGENT, [_possible(id)])
        )
        found = (await _load(ports, revision, tenant, agents)).get(id)
    if found is None:
        raise NotFound(f"there is no {RecordType.AGENT} {id}")
    return found


async def load_many_agent_layers(
    ports: Ports, tenant: str, ids: Sequence[str]
) -> Mapping[str, AgentLayers]:
    """Those of many agents, by their ids, in as many questions as for one; who is gone has none."""
    revision = await ports.records.revision()
    kept = {id: ports.record_cache.get(revision, ("lineage", tenant, id)) for id in ids}
    found: dict[str, AgentLayers] = {
        id: agent_layers for id, agent_layers in kept.items() if agent_layers
    }
    unknown = [id for id in kept if id not in found]
    if unknown:
        agents = await _records(ports, tenant, RecordType.AGENT, unknown)
        found |= await _load(ports, revision, tenant, agents)
    return found


async def _load(
    ports: Ports, revision: int, tenant: str, agents: Sequence[Record]
) -> Mapping[str, AgentLayers]:
    classes = (await load_rules(ports, tenant)).policy.classes
    account = ports.record_cache.get(revision, (tenant, RecordType.TENANT, tenant))
    if account is None:
        account = next(iter(await _records(ports, tenant, RecordType.TENANT, [tenant])), None)
    pairs = sorted({pair for agent in agents if (pair := agent.body.get("humanPairId"))})
    people = await ports.records.get(tenant, RecordType.PERSON, pairs) if pairs else ()
    humans = {person.id: person for person in people if person}
    found: dict[str, AgentLayers] = {}
    for agent in agents:
        variables = placeholder_values(
            agent, account, humans.get(agent.body.get("humanPairId") or "")
        )
        render_context = RenderContext(classes, variables)
        found[agent.id] = agent_layers = AgentLayers(
            agent, stack_of(agent), render_context, render_context.key
        )
        ports.record_cache.put(revision, ("lineage", tenant, agent.id), agent_layers)
    return found


async def _records(
    ports: Ports, tenant: str, record_type: RecordType, ids: Sequence[str]
) -> Sequence[Record]:
    """Those that are there, the ones not asked for again that were since any record changed."""
    revision = await ports.records.revision()
    kept = {id: ports.record_cache.get(revision, (tenant, record_type, id)) for id in ids}
    unknown = [id for id, record in kept.items() if record is None]
    for record in await ports.records.get(tenant, record_type, unknown) if unknown else ():
        if record is not None:
            kept[record.id] = record
            ports.record_cache.put(revision, (tenant, record_type, record.id), record)
    return [record for record in kept.values() if record]


def _possible(id: str) -> str:
    try:
        return identifier(id)
    except ValidationError:
        raise NotFound(f"there is no {RecordType.AGENT} of that id") from None


async def render_context_of(ports: Ports, stack: Stack) -> RenderContext | None:
    """With whose eyes a workspace is seen; None where it is nobody's but its own."""
    own = stack[0]
    if own.kind is not ScopeKind.AGENT:
        return None
    return (await load_agent_layers(ports, own.tenant, own.name)).eye


async def classes_of(ports: Ports, stack: Stack) -> FileClassRules | None:
    """The rules by which the files of a template or of the defaults are told apart."""
    if stack[0].kind not in {ScopeKind.TEMPLATE, ScopeKind.DEFAULTS}:
        return None
    return (await load_rules(ports, stack[0].tenant)).policy.classes


async def load_placeholder_values(
    ports: Ports, agent: Record, human: Record | None = None
) -> PlaceholderValues:
    """The words for an agent as this record has it; of its human, unless one is given."""
    [tenant] = await ports.records.get(agent.tenant, RecordType.TENANT, [agent.tenant])
    pair = agent.body.get("humanPairId")
    if human is None and pair:
        [human] = await ports.records.get(agent.tenant, RecordType.PERSON, [pair])
    return placeholder_values(agent, tenant, human)


def placeholder_values(
    agent: Record, tenant: Record | None, human: Record | None
) -> PlaceholderValues:
    body = human.body if human else {}
    return PlaceholderValues(
        agent_name=agent.body["name"],
        tenant_name=tenant.body["name"] if tenant else None,
        human_name=body.get("name"),
        human_email=body.get("email"),
        human_title=body.get("title"),
        human_timezone=body.get("timezone"),
        human_pronouns=body.get("pronouns"),
    )
