"""The catalog in a place outside: writing what differs, removing what no longer belongs.

It is a projection. Nothing here changes the store, and nothing is read back but what stands where.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

from msgspec import Struct

from carrel.actions.policies import POLICY_ID, policy_of
from carrel.actions.records import each
from carrel.actions.tenants import by_slug
from carrel.actions.watching import Tally, Watch, quiet
from carrel.core import catalog
from carrel.core.catalog import DEFAULTS, Layer, Own, Plan, ReviewedFile
from carrel.core.classes import Classes
from carrel.core.errors import Missing, Taken
from carrel.core.names import Digest, Kind, Scope, digest
from carrel.core.placement import beneath_others
from carrel.core.record import Noun, Record
from carrel.core.tree import Blob, Tree
from carrel.ports import Corrupt, Depot, World

CLAIM: Final = ".carrel-catalog.json"
"""The object that says whose the catalog in a place is. Without it nothing there is removed."""
_CLAIMED: Final = b'{"layout":"catalog","version":1}\n'
_TOGETHER: Final = 50
"""Trees that are read at once."""
_OBJECTS: Final = 256
_BYTES: Final = 8 * 2**20
"""Contents that are held at once: this many objects, and bytes unless one is larger."""
_BARRED: Final = "another file stands where its directory would be"

Item = TypeVar("Item")


class Failure(Struct, frozen=True):
    """An object that is not as it should be."""

    key: str
    why: str
    passing: bool
    """It may be had another time; else the place cannot hold it."""


@dataclass(slots=True)
class Exported:
    """What came of projecting one tenant or several."""

    tenants: int = 0
    written: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: list[Failure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Files whose names mean something else in this layout."""


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
    keeper = _Keeper(world, depot, done)
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
    scopes = [Scope(agent.tenant, Kind.AGENT, agent.id) for agent in agents]
    plan: dict[str, Blob | bytes] = {}
    for agent, tree in zip(agents, await world.trees.read(scopes), strict=True):
        # A template that came after these were listed is projected when it is noticed itself.
        template = templates.get(agent.body["templateId"] or "", DEFAULTS)
        own = Own(agent.body["slug"], tree, agent.created, template)
        _tell_left_out(done, f"{tenant}/{own.slug}", tree)
        plan |= catalog.of_agent(tenant, classes, own)
    return plan


def _tell_left_out(done: Exported, whose: str, tree: Tree) -> None:
    done.left_out += [f"{whose}/{path}" for path in catalog.left_out(tree)]


class _Keeper:
    """Brings what stands under one prefix to what is wanted there, plan by plan."""

    def __init__(self, world: World, depot: Depot, done: Exported) -> None:
        self._world, self._depot, self._done = world, depot, done
        self._standing: dict[str, Digest | None] = {}
        """What is there and was not wanted so far."""
        self._reviewed: set[str] = set()
        """What several agents may want."""
        self._refused: dict[str, Blob | bytes] = {}

    async def look(self, prefix: str) -> None:
        async for key, known in self._depot.list(prefix):
            if catalog.parse(key):
                self._standing[key] = known

    async def want(self, plan: Plan) -> None:
        """What is made from files is written after them, so that it tells of nothing to come."""
        barred = beneath_others(plan) if self._depot.nests else frozenset()
        self._done.failures += [Failure(key, _BARRED, passing=False) for key in sorted(barred)]
        wanted = {key: plan[key] for key in plan if key not in barred}
        news = {key: wanted[key] for key in wanted if self._is_news(key, wanted[key])}
        for kind in (Blob, bytes):
            await self._put({key: news[key] for key in news if isinstance(news[key], kind)})

    async def finish(self) -> None:
        """Remove what nobody wanted; then there may be room for what was refused."""
        await self._depot.delete(list(self._standing))
        self._done.deleted += len(self._standing)
        again, self._refused = self._refused, {}
        for some in _loads(again):
            for key, why in (await self._write(some)).items():
                self._done.failures.append(Failure(key, why, passing=False))

    def _is_news(self, key: str, content: Blob | bytes) -> bool:
        if key in self._reviewed:
            return False
        if isinstance(catalog.parse(key), ReviewedFile):
            self._reviewed.add(key)
        name = content.digest if isinstance(content, Blob) else digest(content)
        same = self._standing.pop(key, None) == name
        self._done.unchanged += same
        return not same

    async def _put(self, contents: Plan) -> None:
        for some in _loads(contents):
            self._refused |= {key: some[key] for key in await self._write(some)}

    async def _write(self, contents: Plan) -> Mapping[str, str]:
        """What the place cannot hold, with the reason. What cannot be had leaves what is there."""
        refused = await self._depot.put(found := await self._bytes(contents))
        self._done.written += len(found) - len(refused)
        return refused

    async def _bytes(self, contents: Plan) -> dict[str, bytes]:
        blobs = {key: blob for key, blob in contents.items() if isinstance(blob, Blob)}
        made = {key: made for key, made in contents.items() if isinstance(made, bytes)}
        try:
            stored = await self._world.blobs.get(set(blobs.values())) if blobs else {}
        except Corrupt:
            return made | await self._one_by_one(blobs)
        return made | {key: stored[blob.digest] for key, blob in blobs.items()}

    async def _one_by_one(self, blobs: Mapping[str, Blob]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for key, blob in blobs.items():
            try:
                found[key] = (await self._world.blobs.get([blob]))[blob.digest]
            except Corrupt as problem:
                self._done.failures.append(Failure(key, str(problem), passing=True))
        return found


def _loads(contents: Plan) -> Iterator[dict[str, Blob | bytes]]:
    """As many at a time as may be held in memory."""
    load: dict[str, Blob | bytes] = {}
    weight = 0
    for key, content in contents.items():
        size = content.size if isinstance(content, Blob) else len(content)
        if load and (len(load) >= _OBJECTS or weight + size > _BYTES):
            yield load
            load, weight = {}, 0
        load[key] = content
        weight += size
    if load:
        yield load


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
