"""What an agent descends from: its layers, and the words that its placeholders stand for."""

from __future__ import annotations

from msgspec import Struct

from carrel.actions.records import find
from carrel.actions.rules import rules_of
from carrel.core.lineage import stack_of
from carrel.core.names import Kind, Stack
from carrel.core.overlay import Eye
from carrel.core.placeholders import Variables
from carrel.core.record import Noun, Record
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
        agent = await find(world, tenant, Noun.AGENT, id)
        classes = (await rules_of(world, tenant)).policy.classes
        eye = Eye(classes, await variables_of(world, agent))
        found = Lineage(agent, stack_of(agent), eye, eye.key)
        world.memo.keep(revision, ("lineage", tenant, id), found)
    return found


async def eye_of(world: World, stack: Stack) -> Eye | None:
    """With whose eyes a workspace is seen; None where it is nobody's but its own."""
    own = stack[0]
    if own.kind is not Kind.AGENT:
        return None
    return (await lineage_of(world, own.tenant, own.name)).eye


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
