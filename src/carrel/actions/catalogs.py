"""The catalog in a place outside: writing what differs, removing what no longer belongs.

It is a projection. Nothing here changes the store, and nothing is read back but what stands where.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from carrel.actions.catalog_keeper import Exported, Keeper
from carrel.actions.policies import POLICY_ID, policy_of
from carrel.actions.records import each
from carrel.actions.tenants import by_slug
from carrel.actions.watching import Tally, Watch, quiet
from carrel.core import catalog
from carrel.core.catalog import DEFAULTS, Layer, Own, Plan
from carrel.core.classes import Classes
from carrel.core.errors import Missing, Taken
from carrel.core.names import Kind, Scope
from carrel.core.record import Noun, Record
from carrel.core.tree import Blob, Tree
from carrel.ports import Depot, World

CLAIM: Final = ".carrel-catalog.json"
"""The object that says whose the catalog in a place is. Without it nothing there is removed."""
_CLAIMED: Final = b'{"layout":"catalog","version":1}\n'
_TOGETHER: Final = 50
"""Trees that are read at once."""

Item = TypeVar("Item")


async def export(
    world: World,
    depot: Depot,
    *,
    only: str | None = None,
    adopt: bool = False,
    watch: Watch = quiet,
) -> Exported:
    """Bring a place to what the store says, tenant by tenant; ``only`` names one by its slug.

    Raises Missing where there is no such tenant, and Taken where the place holds a catalog that
    is not Carrel's, unless that is to be adopted.
    """
    chosen = [await _tenant(world, only)] if only is not None else None
    await claim(depot, adopt=adopt)
    tally, done = Tally(watch, "exporting agents"), Exported()
    tally.expect(await _count(world, chosen))
    slugs: set[str] = set()
    async for tenant in _each_of(world, chosen):
        await project(world, depot, tenant, done, tally)
        slugs.add(tenant.body["slug"])
    if chosen is None:
        done.deleted += await remove_strangers(depot, slugs)
    return done


async def claim(depot: Depot, *, adopt: bool = False) -> None:
    """Mark a place as Carrel's, before anything there is removed. Raises Taken."""
    if await depot.get(CLAIM) is not None:
        return
    if not adopt:
        async for key, _ in depot.list("tenants/"):
            if catalog.parse(key):
                raise Taken("there is a catalog already that is not Carrel's; --adopt takes it")
    await depot.put({CLAIM: _CLAIMED})


async def remove_strangers(depot: Depot, slugs: Iterable[str]) -> int:
    """Remove what stands there of tenants that are none of these, and say how much it was."""
    known = frozenset(slugs)
    strange: list[str] = []
    async for key, _ in depot.list("tenants/"):
        found = catalog.parse(key)
        if found is not None and found.tenant not in known:
            strange.append(key)
    await depot.delete(strange)
    return len(strange)


async def project(
    world: World, depot: Depot, tenant: Record, done: Exported, tally: Tally | None = None
) -> None:
    """Bring what stands of one tenant to what the store says now."""
    [policy] = await world.records.get(tenant.id, Noun.POLICY, [POLICY_ID])
    slug, classes = tenant.body["slug"], policy_of(policy).classes
    keeper = Keeper(world, depot, done)
    await keeper.look(catalog.prefix_of(slug))
    templates = {one.id: one.body["slug"] async for one in each(world, tenant.id, Noun.TEMPLATE)}
    async for plan in _layers(world, tenant, classes, templates, done):
        await keeper.want(plan)
    async for some in _batches(each(world, tenant.id, Noun.AGENT)):
        await keeper.want(await _agents(world, slug, classes, templates, some, done))
        if tally is not None:
            tally.add(len(some))
    await keeper.finish()
    done.tenants += 1


async def _layers(
    world: World, tenant: Record, classes: Classes, templates: Mapping[str, str], done: Exported
) -> AsyncIterator[Plan]:
    """The defaults and every template."""
    [seeded] = await world.records.get(tenant.id, Noun.DEFAULTS, [tenant.id])
    version = seeded.body["version"] if seeded else 0
    slug = tenant.body["slug"]
    scopes = {Scope(tenant.id, Kind.DEFAULTS, ""): DEFAULTS}
    scopes |= {Scope(tenant.id, Kind.TEMPLATE, id): name for id, name in templates.items()}
    for some in _chunks(scopes, _TOGETHER):
        plan: dict[str, Blob | bytes] = {}
        for tree in await world.trees.read(some):
            layer = Layer(scopes[tree.scope], tree)
            _tell_left_out(done, f"{slug}/_catalog/{layer.slug}", tree)
            plan |= catalog.of_layer(slug, classes, layer, version * (layer.slug == DEFAULTS))
        yield plan


async def _agents(
    world: World,
    tenant: str,
    classes: Classes,
    templates: Mapping[str, str],
    agents: Sequence[Record],
    done: Exported,
) -> Plan:
    """One plan and one reading of trees for all of these agents."""
    own = [Scope(agent.tenant, Kind.AGENT, agent.id) for agent in agents]
    pins = [Scope(agent.tenant, Kind.PINS, agent.body.get("pins") or "") for agent in agents]
    scopes = tuple(dict.fromkeys((*own, *pins)))
    trees = dict(zip(scopes, await world.trees.read(scopes), strict=True))
    plan: dict[str, Blob | bytes] = {}
    for agent, scope, pinset in zip(agents, own, pins, strict=True):
        # A template that came after these were listed is projected when it is noticed itself.
        template = templates.get(agent.body.get("templateId") or "", DEFAULTS)
        slug, tree = agent.body["slug"], trees[scope]
        _tell_left_out(done, f"{tenant}/{slug}", tree)
        own_files = Own(slug, tree, agent.created, template, trees[pinset])
        plan |= catalog.of_agent(tenant, classes, own_files)
    return plan


def _tell_left_out(done: Exported, whose: str, tree: Tree) -> None:
    done.left_out += [f"{whose}/{path}" for path in catalog.left_out(tree)]


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


async def _tenant(world: World, slug: str) -> Record:
    found = await by_slug(world, slug)
    if found is None:
        raise Missing(f"there is no tenant {slug}")
    return found


async def _each_of(world: World, chosen: Sequence[Record] | None) -> AsyncIterator[Record]:
    if chosen is None:
        async for tenant in each(world, "", Noun.TENANT):
            yield tenant
    else:
        for tenant in chosen:
            yield tenant


async def _count(world: World, chosen: Sequence[Record] | None) -> int:
    """How many agents there are to come."""
    total = 0
    async for tenant in _each_of(world, chosen):
        total += sum([1 async for _ in each(world, tenant.id, Noun.AGENT)])
    return total
