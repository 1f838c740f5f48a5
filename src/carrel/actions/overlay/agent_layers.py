"""What an agent descends from: its layers, and the words that its placeholders stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from carrel.actions.policy.tenant_rules import rules_of
from carrel.core.errors import Malformed, Missing
from carrel.core.identifiers import Kind, Stack, identifier
from carrel.core.overlay.agent_files import Eye
from carrel.core.overlay.file_classes import Classes
from carrel.core.overlay.layers import stack_of
from carrel.core.overlay.placeholders import Variables
from carrel.core.store.record import Noun, Record
from carrel.ports import World


class Lineage(Struct, frozen=True):
    agent: Record
    stack: Stack
    eye: Eye
    key: str
    """Changes when anything does that is seen differently through its eye."""


async def lineage_of(world: World, tenant: str, id: str) -> Lineage:
    """Asked once for as long as no record changes. Raises Missing."""
    revision = await world.records.revision()
    found: Lineage | None = world.memo.find(revision, ("lineage", tenant, id))
    if found is None:
        agent: Record | None = world.memo.find(revision, (tenant, Noun.AGENT, id))
        agents = [agent] if agent else await _records(world, tenant, Noun.AGENT, [_possible(id)])
        found = (await _traced(world, revision, tenant, agents)).get(id)
    if found is None:
        raise Missing(f"there is no {Noun.AGENT} {id}")
    return found


async def lineages_of(world: World, tenant: str, ids: Sequence[str]) -> Mapping[str, Lineage]:
    """Those of many agents, by their ids, in as many questions as for one; who is gone has none."""
    revision = await world.records.revision()
    kept = {id: world.memo.find(revision, ("lineage", tenant, id)) for id in ids}
    found: dict[str, Lineage] = {id: lineage for id, lineage in kept.items() if lineage}
    unknown = [id for id in kept if id not in found]
    if unknown:
        agents = await _records(world, tenant, Noun.AGENT, unknown)
        found |= await _traced(world, revision, tenant, agents)
    return found


async def _traced(
    world: World, revision: int, tenant: str, agents: Sequence[Record]
) -> Mapping[str, Lineage]:
    classes = (await rules_of(world, tenant)).policy.classes
    account = world.memo.find(revision, (tenant, Noun.TENANT, tenant))
    if account is None:
        account = next(iter(await _records(world, tenant, Noun.TENANT, [tenant])), None)
    pairs = sorted({pair for agent in agents if (pair := agent.body.get("humanPairId"))})
    people = await world.records.get(tenant, Noun.PERSON, pairs) if pairs else ()
    humans = {person.id: person for person in people if person}
    found: dict[str, Lineage] = {}
    for agent in agents:
        variables = words(agent, account, humans.get(agent.body.get("humanPairId") or ""))
        eye = Eye(classes, variables)
        found[agent.id] = lineage = Lineage(agent, stack_of(agent), eye, eye.key)
        world.memo.keep(revision, ("lineage", tenant, agent.id), lineage)
    return found


async def _records(world: World, tenant: str, noun: Noun, ids: Sequence[str]) -> Sequence[Record]:
    """Those that are there, the ones not asked for again that were since any record changed."""
    revision = await world.records.revision()
    kept = {id: world.memo.find(revision, (tenant, noun, id)) for id in ids}
    unknown = [id for id, record in kept.items() if record is None]
    for record in await world.records.get(tenant, noun, unknown) if unknown else ():
        if record is not None:
            kept[record.id] = record
            world.memo.keep(revision, (tenant, noun, record.id), record)
    return [record for record in kept.values() if record]


def _possible(id: str) -> str:
    try:
        return identifier(id)
    except Malformed:
        raise Missing(f"there is no {Noun.AGENT} of that id") from None


async def eye_of(world: World, stack: Stack) -> Eye | None:
    """With whose eyes a workspace is seen; None where it is nobody's but its own."""
    own = stack[0]
    if own.kind is not Kind.AGENT:
        return None
    return (await lineage_of(world, own.tenant, own.name)).eye


async def classes_of(world: World, stack: Stack) -> Classes | None:
    """The rules by which the files of a template or of the defaults are told apart."""
    if stack[0].kind not in {Kind.TEMPLATE, Kind.DEFAULTS}:
        return None
    return (await rules_of(world, stack[0].tenant)).policy.classes


async def variables_of(world: World, agent: Record, human: Record | None = None) -> Variables:
    """The words for an agent as this record has it; of its human, unless one is given."""
    [tenant] = await world.records.get(agent.tenant, Noun.TENANT, [agent.tenant])
    pair = agent.body.get("humanPairId")
    if human is None and pair:
        [human] = await world.records.get(agent.tenant, Noun.PERSON, [pair])
    return words(agent, tenant, human)


def words(agent: Record, tenant: Record | None, human: Record | None) -> Variables:
    body = human.body if human else {}
    return Variables(
        agent_name=agent.body["name"],
        tenant_name=tenant.body["name"] if tenant else None,
        human_name=body.get("name"),
        human_email=body.get("email"),
        human_title=body.get("title"),
        human_timezone=body.get("timezone"),
        human_pronouns=body.get("pronouns"),
    )
