"""Many at once: what a page full of agents or templates shows, in a bounded number of questions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from carrel.actions.overlay.agent_layers import classes_of, load_many_agent_layers
from carrel.actions.overlay.pins import can_see_agent
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import PREFIXES, Page, find_by_id_or_slug, validate_cursor
from carrel.core.access import Actor
from carrel.core.agents.agent import by_template_index
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.agent_files import RenderContext, overridden
from carrel.core.overlay.compose import Workspace, compose, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import stack_of
from carrel.core.runs import Run
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Blob
from carrel.ports import Ports

_AT_ONCE = 500


class PinOffer(Struct, frozen=True):
    """A pinned file that a template offers to those who follow it."""

    path: Path
    blob: Blob
    source: ScopeKind


async def agents(
    ports: Ports,
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
        link = by_template_index(
            (await find_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, template)).id
        )
    validate_cursor(cursor, PREFIXES[RecordType.AGENT])
    wanted, found = starts.casefold(), list[Record]()
    at_once = _AT_ONCE if wanted else limit + 1
    while some := await ports.records.list(
        actor.tenant, RecordType.AGENT, link=link, after=cursor, limit=at_once
    ):
        found += [one for one in some if _starts(one, wanted)]
        cursor = some[-1].id
        if len(found) > limit or len(some) < at_once:
            break
    return Page(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else None)


def _starts(agent: Record, wanted: str) -> bool:
    slug, name = str(agent.body["slug"]), str(agent.body["name"])
    return slug.startswith(wanted) or name.casefold().startswith(wanted)


async def followers(ports: Ports, tenant: str, templates: Sequence[str]) -> tuple[int, ...]:
    """How many agents follow each of these templates, by id."""
    index_keys = [by_template_index(id) for id in templates]
    return await ports.records.count(tenant, RecordType.AGENT, index_keys)


async def workspaces(
    ports: Ports, stacks: Sequence[Stack], prefix: str = ""
) -> tuple[Workspace | None, ...]:
    """Everything that each of them shows, all as of one moment; None for an agent that is gone."""
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    agents = [scope for scope in scopes if scope.kind is ScopeKind.AGENT]
    known: dict[Scope, RenderContext] = {}
    for tenant in {scope.tenant for scope in agents}:
        ids = [scope.name for scope in agents if scope.tenant == tenant]
        found = await load_many_agent_layers(ports, tenant, ids)
        known |= {Scope(tenant, ScopeKind.AGENT, id): found[id].eye for id in found}
    trees = dict(zip(scopes, await ports.trees.read(scopes, prefix=prefix), strict=True))
    shown: list[Workspace | None] = []
    for stack in stacks:
        layers = [trees[scope] for scope in stack]
        if stack[0].kind is ScopeKind.AGENT:
            render_context = known.get(stack[0])
            shown.append(render_context.compose(layers) if render_context else None)
        else:
            shown.append(compose(layers, await classes_of(ports, stack)))
    return tuple(shown)


async def overrides(ports: Ports, actor: Actor, agents: Sequence[Record]) -> tuple[int, ...]:
    """Of how many files each has a text of its own in place of what lies beneath.

    Raises Missing where one is not within the caller's reach.
    """
    if not all(can_see_agent(actor, agent) for agent in agents):
        raise NotFound("there is no such agent")
    classes = (await load_rules(ports, actor.tenant)).policy.classes
    stacks = [stack_of(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    layers = ([trees[scope] for scope in stack] for stack in stacks)
    return tuple([len(overridden(classes, each)) for each in layers])


async def newest_runs(ports: Ports, actor: Actor, agents: Sequence[str]) -> tuple[Run | None, ...]:
    """The run of each of these agents, by id, that began last. Raises Missing beyond reach."""
    if actor.is_confined and any(actor.agent != id for id in agents):
        raise NotFound("there is no such agent")
    scopes = [Scope(actor.tenant, ScopeKind.AGENT, id) for id in agents]
    return await ports.runs.newest(actor.tenant, scopes)


async def offers(
    ports: Ports, actor: Actor, templates: Sequence[str]
) -> tuple[tuple[PinOffer, ...], ...]:
    """The pinned files that each of these templates, by id, or the defaults beneath it offer."""
    if actor.is_confined:
        raise NotFound("this credential is confined to one workspace")
    classes = (await load_rules(ports, actor.tenant)).policy.classes
    scopes = [Scope(actor.tenant, ScopeKind.TEMPLATE, id) for id in templates]
    *own, defaults = await ports.trees.read((*scopes, Scope(actor.tenant, ScopeKind.DEFAULTS, "")))
    offered = []
    for tree in own:
        paths = sorted({*tree.heads, *defaults.heads})
        pinned = [path for path in paths if classes.class_of(path) is FileClass.PINNED]
        files = [file for path in pinned if (file := resolve(path, (tree, defaults)))]
        offered.append(tuple(PinOffer(file.path, file.blob, file.source.kind) for file in files))
    return tuple(offered)
