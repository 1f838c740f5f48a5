"""The catalog in a place outside: writing what differs, removing what no longer belongs.

It is a projection. Nothing here changes the store, and nothing is read back but what stands where.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from msgspec import Struct

from carrel.actions.accounts.tenants import by_slug
from carrel.actions.catalog.managed_files import shown_instead
from carrel.actions.catalog.writer import CatalogWriter, ExportResult
from carrel.actions.policy.policies import POLICY_ID, policy_of
from carrel.actions.progress import ProgressCounter, Watch, no_progress
from carrel.actions.records import iter_records
from carrel.core.catalog import layout
from carrel.core.catalog.layout import DEFAULTS, CatalogAgent, CatalogLayer, Plan
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import ObjectStore, Ports

CLAIM: Final = ".carrel-catalog.json"
"""The object that says whose the catalog in a place is. Without it nothing there is removed."""
_CLAIMED: Final = b'{"layout":"catalog","version":1}\n'
_TOGETHER: Final = 50
"""Trees that are read at once."""

Plans = dict[Scope, Plan]
Marks = Mapping[Scope, Digest]
"""What tells, of each scope, which files counted as reviewed by it when a tenant was projected."""


class ChangedScope(Struct, frozen=True):
    """What has changed since in a scope, with its mark."""

    mark: Digest | None
    paths: frozenset[Path]


Parts = Mapping[Scope, ChangedScope]

Item = TypeVar("Item")


async def export(
    ports: Ports,
    object_store: ObjectStore,
    *,
    only: str | None = None,
    adopt: bool = False,
    watch: Watch = no_progress,
) -> ExportResult:
    """Bring a place to what the store says, tenant by tenant; ``only`` names one by its slug.

    Raises Missing where there is no such tenant, and Taken where the place holds a catalog that
    is not Carrel's, unless that is to be adopted.
    """
    chosen = [await _tenant(ports, only)] if only is not None else None
    await claim(object_store, adopt=adopt)
    tally, done = ProgressCounter(watch, "exporting agents"), ExportResult()
    tally.expect(await _count(ports, chosen))
    slugs: set[str] = set()
    async for tenant in _each_of(ports, chosen):
        await project(ports, object_store, tenant, done, tally)
        slugs.add(tenant.body["slug"])
    if chosen is None:
        done.deleted += await remove_strangers(object_store, slugs)
    return done


async def claim(object_store: ObjectStore, *, adopt: bool = False) -> None:
    """Mark a place as Carrel's, before anything there is removed. Raises Taken."""
    if await object_store.get(CLAIM) is not None:
        return
    if not adopt:
        async for key, _ in object_store.list("tenants/"):
            if layout.parse(key):
                raise Conflict("there is a catalog already that is not Carrel's; --adopt takes it")
    await object_store.put({CLAIM: _CLAIMED})


async def remove_strangers(object_store: ObjectStore, slugs: Iterable[str]) -> int:
    """Remove what stands there of tenants that are none of these, and say how much it was."""
    known = frozenset(slugs)
    strange: list[str] = []
    async for key, _ in object_store.list("tenants/"):
        found = layout.parse(key)
        if found is not None and found.tenant not in known:
            strange.append(key)
    await object_store.delete(strange)
    return len(strange)


async def project(
    ports: Ports,
    object_store: ObjectStore,
    tenant: Record,
    done: ExportResult,
    tally: ProgressCounter | None = None,
) -> Marks:
    """Bring what stands of one tenant to what the store says now."""
    slug, classes = tenant.body["slug"], await _classes(ports, tenant)
    keeper, marks = CatalogWriter(ports, object_store, done), dict[Scope, Digest]()
    await keeper.look(layout.prefix_of(slug))
    templates = {
        one.id: one.body["slug"]
        async for one in iter_records(ports, tenant.id, RecordType.TEMPLATE)
    }
    scopes = {Scope(tenant.id, ScopeKind.DEFAULTS, ""): DEFAULTS}
    scopes |= {Scope(tenant.id, ScopeKind.TEMPLATE, id): name for id, name in templates.items()}
    for some in _chunks(scopes, _TOGETHER):
        layers = {scope: scopes[scope] for scope in some}
        plans = await _layers(ports, tenant, classes, layers, done)
        await keeper.want(_whole(plans))
        marks |= _marks(plans)
    async for batch in _batches(iter_records(ports, tenant.id, RecordType.AGENT)):
        plans = await _agents(ports, slug, classes, templates, batch, done)
        await keeper.want(_whole(plans))
        marks |= _marks(plans)
        if tally is not None:
            tally.add(len(batch))
    await keeper.finish()
    done.tenants += 1
    return marks


async def project_parts(
    ports: Ports, object_store: ObjectStore, tenant: Record, parts: Parts, done: ExportResult
) -> bool:
    """The same for some scopes alone. False, and nothing is done, where more follows from them.

    That is so where one is gone, or where another set of files counts as reviewed by it: whether
    others want those too only the whole tenant tells. And a managed file of a template or of the
    defaults is at once that of all who follow.
    """
    classes, said = await _classes(ports, tenant), ExportResult()
    if any(_is_followed(classes, scope, part) for scope, part in parts.items()):
        return False
    found = await _slugs(ports, tenant, parts)
    if found is None:
        return False
    layers, templates, agents = found
    plans = await _layers(ports, tenant, classes, layers, said)
    slug = tenant.body["slug"]
    plans |= await _agents(ports, slug, classes, templates, agents, said)
    if any(parts[scope].mark != mark for scope, mark in _marks(plans).items()):
        return False
    names = {agent.id: agent.body["slug"] for agent in agents}
    for scope, plan in plans.items():
        prefix = (
            layout.agent_prefix(slug, names[scope.name])
            if scope.kind is ScopeKind.AGENT
            else layout.template_prefix(slug, layers[scope])
        )
        keeper = CatalogWriter(ports, object_store, done)
        await keeper.look(prefix)
        await keeper.want({key: plan[key] for key in plan if key.startswith(prefix)})
        await keeper.finish()
    done.left_out += said.left_out
    done.tenants += 1
    return True


def _is_followed(classes: FileClassRules, scope: Scope, part: ChangedScope) -> bool:
    managed = any(classes.class_of(path) is FileClass.MANAGED for path in part.paths)
    return managed and scope.kind is not ScopeKind.AGENT


async def _slugs(
    ports: Ports, tenant: Record, scopes: Collection[Scope]
) -> tuple[dict[Scope, str], dict[str, str], list[Record]] | None:
    """The slugs of layers, those of templates by id, and the agents; None where one is gone."""
    ids = [scope.name for scope in scopes if scope.kind is ScopeKind.AGENT]
    agents = [one for one in await ports.records.get(tenant.id, RecordType.AGENT, ids) if one]
    chosen = {scope.name for scope in scopes if scope.kind is ScopeKind.TEMPLATE}
    wanted = sorted(chosen | {agent.body.get("templateId") or "" for agent in agents} - {""})
    found = await ports.records.get(tenant.id, RecordType.TEMPLATE, wanted)
    templates = {one.id: str(one.body["slug"]) for one in found if one}
    if len(agents) < len(ids) or not chosen <= templates.keys():
        return None
    above = [scope for scope in scopes if scope.kind is not ScopeKind.AGENT]
    return {one: templates.get(one.name, DEFAULTS) for one in above}, templates, agents


async def _classes(ports: Ports, tenant: Record) -> FileClassRules:
    [policy] = await ports.records.get(tenant.id, RecordType.POLICY, [POLICY_ID])
    return policy_of(policy).classes


def _whole(plans: Plans) -> Plan:
    return {key: plan[key] for plan in plans.values() for key in plan}


def _marks(plans: Plans) -> dict[Scope, Digest]:
    return {scope: layout.reviewed(plan) for scope, plan in plans.items()}


async def _layers(
    ports: Ports,
    tenant: Record,
    classes: FileClassRules,
    scopes: Mapping[Scope, str],
    done: ExportResult,
) -> Plans:
    """The defaults and templates, by their slugs."""
    [seeded] = await ports.records.get(tenant.id, RecordType.DEFAULTS, [tenant.id])
    version = seeded.body["version"] if seeded else 0
    slug, plans = tenant.body["slug"], dict[Scope, Plan]()
    for tree in await ports.trees.read(tuple(scopes)) if scopes else ():
        layer = CatalogLayer(scopes[tree.scope], tree)
        _tell_left_out(done, f"{slug}/_catalog/{layer.slug}", tree)
        seeds = version * (layer.slug == DEFAULTS)
        plans[tree.scope] = layout.of_layer(slug, classes, layer, seeds)
    return plans


async def _agents(
    ports: Ports,
    tenant: str,
    classes: FileClassRules,
    templates: Mapping[str, str],
    agents: Sequence[Record],
    done: ExportResult,
) -> Plans:
    """One reading of trees for all of these agents."""
    own = [Scope(agent.tenant, ScopeKind.AGENT, agent.id) for agent in agents]
    pins = [Scope(agent.tenant, ScopeKind.PINS, agent.body.get("pins") or "") for agent in agents]
    scopes = tuple(dict.fromkeys((*own, *pins)))
    trees = dict(zip(scopes, await ports.trees.read(scopes) if scopes else (), strict=True))
    shown = await shown_instead(ports, classes, agents, trees)
    plans: Plans = {}
    for agent, scope, pinset in zip(agents, own, pins, strict=True):
        # A template that came after these were listed is projected when it is noticed itself.
        template = templates.get(agent.body.get("templateId") or "", DEFAULTS)
        slug, tree = agent.body["slug"], trees[scope]
        _tell_left_out(done, f"{tenant}/{slug}", tree)
        instead = shown.get(agent.id, {})
        own_files = CatalogAgent(slug, tree, agent.created_at, template, trees[pinset], instead)
        plans[scope] = layout.of_agent(tenant, classes, own_files)
    return plans


def _tell_left_out(done: ExportResult, whose: str, tree: Tree) -> None:
    done.left_out += [f"{whose}/{path}" for path in layout.left_out(tree)]


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


async def _batches(items: AsyncIterator[Item]) -> AsyncIterator[list[Item]]:
    batch: list[Item] = []
    async for item in items:
        batch.append(item)
        if len(batch) == _TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


async def _tenant(ports: Ports, slug: str) -> Record:
    found = await by_slug(ports, slug)
    if found is None:
        raise NotFound(f"there is no tenant {slug}")
    return found


async def _each_of(ports: Ports, chosen: Sequence[Record] | None) -> AsyncIterator[Record]:
    if chosen is None:
        async for tenant in iter_records(ports, "", RecordType.TENANT):
            yield tenant
    else:
        for tenant in chosen:
            yield tenant


async def _count(ports: Ports, chosen: Sequence[Record] | None) -> int:
    """How many agents there are to come."""
    total = 0
    async for tenant in _each_of(ports, chosen):
        total += sum([1 async for _ in iter_records(ports, tenant.id, RecordType.AGENT)])
    return total
