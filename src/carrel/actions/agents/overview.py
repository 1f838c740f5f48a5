"""Many at once: what a page full of agents or templates shows, in a bounded number of questions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from carrel.actions.overlay.agent_layers import classes_of, lineages_of
from carrel.actions.overlay.pins import within_reach
from carrel.actions.policy.tenant_rules import rules_of
from carrel.actions.records import PREFIXES, Page, find_named, issued
from carrel.core.access import Actor
from carrel.core.agents.agent import of_template
from carrel.core.errors import Missing
from carrel.core.identifiers import Kind, Path, Scope, Stack
from carrel.core.overlay.agent_files import Eye, overridden
from carrel.core.overlay.compose import Workspace, compose, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import stack_of
from carrel.core.runs import Run
from carrel.core.store.record import Noun, Record
from carrel.core.store.tree import Blob
from carrel.ports import World

_AT_ONCE = 500


class Offer(Struct, frozen=True):
    """A pinned file that a template offers to those who follow it."""

    path: Path
    blob: Blob
    source: Kind


async def agents(
    world: World,
    actor: Actor,
    *,
    template: str | None = None,
    starts: str = "",
    cursor: str = "",
    limit: int = 100,
) -> Page[Record]:
    """Agents in order of id: those that follow a template, those whose name or slug starts so.

    Raises Missing where there is no such template.
    """
    link = ""
    if template is not None:
        link = of_template((await find_named(world, actor.tenant, Noun.TEMPLATE, template)).id)
    issued(cursor, PREFIXES[Noun.AGENT])
    wanted, found = starts.casefold(), list[Record]()
    at_once = _AT_ONCE if wanted else limit + 1
    while some := await world.records.list(
        actor.tenant, Noun.AGENT, link=link, after=cursor, limit=at_once
    ):
        found += [one for one in some if _starts(one, wanted)]
        cursor = some[-1].id
        if len(found) > limit or len(some) < at_once:
            break
    return Page(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else None)


def _starts(agent: Record, wanted: str) -> bool:
    slug, name = str(agent.body["slug"]), str(agent.body["name"])
    return slug.startswith(wanted) or name.casefold().startswith(wanted)


async def followers(world: World, tenant: str, templates: Sequence[str]) -> tuple[int, ...]:
    """How many agents follow each of these templates, by id."""
    links = [of_template(id) for id in templates]
    return await world.records.count(tenant, Noun.AGENT, links)


async def workspaces(
    world: World, stacks: Sequence[Stack], prefix: str = ""
) -> tuple[Workspace | None, ...]:
    """Everything that each of them shows, all as of one moment; None for an agent that is gone."""
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    agents = [scope for scope in scopes if scope.kind is Kind.AGENT]
    known: dict[Scope, Eye] = {}
    for tenant in {scope.tenant for scope in agents}:
        ids = [scope.name for scope in agents if scope.tenant == tenant]
        found = await lineages_of(world, tenant, ids)
        known |= {Scope(tenant, Kind.AGENT, id): found[id].eye for id in found}
    trees = dict(zip(scopes, await world.trees.read(scopes, prefix=prefix), strict=True))
    shown: list[Workspace | None] = []
    for stack in stacks:
        layers = [trees[scope] for scope in stack]
        if stack[0].kind is Kind.AGENT:
            eye = known.get(stack[0])
            shown.append(eye.compose(layers) if eye else None)
        else:
            shown.append(compose(layers, await classes_of(world, stack)))
    return tuple(shown)


async def overrides(world: World, actor: Actor, agents: Sequence[Record]) -> tuple[int, ...]:
    """Of how many files each has a text of its own in place of what lies beneath.

    Raises Missing where one is not within the caller's reach.
    """
    if not all(within_reach(actor, agent) for agent in agents):
        raise Missing("there is no such agent")
    classes = (await rules_of(world, actor.tenant)).policy.classes
    stacks = [stack_of(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await world.trees.read(scopes), strict=True))
    layers = ([trees[scope] for scope in stack] for stack in stacks)
    return tuple([len(overridden(classes, each)) for each in layers])


async def newest_runs(world: World, actor: Actor, agents: Sequence[str]) -> tuple[Run | None, ...]:
    """The run of each of these agents, by id, that began last. Raises Missing beyond reach."""
    if actor.bound and any(actor.agent != id for id in agents):
        raise Missing("there is no such agent")
    scopes = [Scope(actor.tenant, Kind.AGENT, id) for id in agents]
    return await world.runs.newest(actor.tenant, scopes)


async def offers(
    world: World, actor: Actor, templates: Sequence[str]
) -> tuple[tuple[Offer, ...], ...]:
    """The pinned files that each of these templates, by id, or the defaults beneath it offer."""
    if actor.bound:
        raise Missing("this credential is confined to one workspace")
    classes = (await rules_of(world, actor.tenant)).policy.classes
    scopes = [Scope(actor.tenant, Kind.TEMPLATE, id) for id in templates]
    *own, defaults = await world.trees.read((*scopes, Scope(actor.tenant, Kind.DEFAULTS, "")))
    offered = []
    for tree in own:
        paths = sorted({*tree.heads, *defaults.heads})
        pinned = [path for path in paths if classes.of(path) is FileClass.PINNED]
        files = [file for path in pinned if (file := resolve(path, (tree, defaults)))]
        offered.append(tuple(Offer(file.path, file.blob, file.source.kind) for file in files))
    return tuple(offered)
