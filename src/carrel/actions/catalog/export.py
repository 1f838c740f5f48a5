"""Exports the catalog to an object store.

The catalog is a projection. Nothing here changes the store, and only the list of existing
objects is read back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from msgspec import Struct

from carrel.actions.accounts.tenants import find_by_slug
from carrel.actions.catalog.managed_files import load_served_files
from carrel.actions.catalog.writer import CatalogWriter, ExportResult
from carrel.actions.policy.policy_models import POLICY_ID, policy_from_record
from carrel.actions.progress import ProgressCallback, ProgressCounter, no_progress
from carrel.actions.records import iter_records
from carrel.core.accounts import tenant_from_record
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.template import template_from_record
from carrel.core.catalog import layout
from carrel.core.catalog.layout import DEFAULTS_SLUG, CatalogAgent, CatalogLayer, CatalogPlan
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.default_files import seed_state_from_record
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import ObjectStore, Ports

CLAIM_KEY: Final = ".carrel-catalog.json"
"""Object that marks the catalog as Carrel's. Without it nothing is deleted there."""
_CLAIM_CONTENT: Final = b'{"layout":"catalog","version":1}\n'
_BATCH_SIZE: Final = 50
"""Trees read at a time."""

Plans = dict[Scope, CatalogPlan]
ReviewedDigests = Mapping[Scope, Digest]
"""Digest of each scope's reviewed files, as of the last export of the tenant."""


class ChangedScope(Struct, frozen=True):
    """Paths changed in a scope since the last export, and its reviewed-files digest."""

    reviewed_digest: Digest | None
    paths: frozenset[Path]


ChangedScopes = Mapping[Scope, ChangedScope]

Item = TypeVar("Item")


async def export(
    ports: Ports,
    object_store: ObjectStore,
    *,
    tenant_slug: str | None = None,
    adopt: bool = False,
    on_progress: ProgressCallback = no_progress,
) -> ExportResult:
    """Export all tenants, or the one of `tenant_slug`.

    Raises NotFound for an unknown tenant, and Conflict if the object store holds a catalog that is
    not Carrel's, unless `adopt` is set.
    """
    tenants = [await _get_tenant(ports, tenant_slug)] if tenant_slug is not None else None
    await claim(object_store, adopt=adopt)
    progress, result = ProgressCounter(on_progress, "exporting agents"), ExportResult()
    progress.set_total(await _count_agents(ports, tenants))
    slugs: set[str] = set()
    async for tenant in _iter_tenants(ports, tenants):
        await export_tenant(ports, object_store, tenant, result, progress)
        slugs.add(tenant_from_record(tenant).slug)
    if tenants is None:
        result.deleted += await remove_unknown_tenants(object_store, slugs)
    return result


async def claim(object_store: ObjectStore, *, adopt: bool = False) -> None:
    """Mark the object store as Carrel's before anything is deleted. Raises Conflict."""
    if await object_store.get(CLAIM_KEY) is not None:
        return
    if not adopt:
        async for key, _ in object_store.list("tenants/"):
            if layout.parse_key(key):
                raise Conflict(
                    "the target contains a catalog that Carrel did not write;"
                    " use --adopt to take it over"
                )
    await object_store.put({CLAIM_KEY: _CLAIM_CONTENT})


async def remove_unknown_tenants(object_store: ObjectStore, slugs: Iterable[str]) -> int:
    """Delete the objects of tenants not in `slugs`; return how many."""
    known_slugs = frozenset(slugs)
    unknown_keys: list[str] = []
    async for key, _ in object_store.list("tenants/"):
        parsed = layout.parse_key(key)
        if parsed is not None and parsed.tenant not in known_slugs:
            unknown_keys.append(key)
    await object_store.delete(unknown_keys)
    return len(unknown_keys)


async def export_tenant(
    ports: Ports,
    object_store: ObjectStore,
    tenant: Record,
    result: ExportResult,
    progress: ProgressCounter | None = None,
) -> ReviewedDigests:
    """Export one tenant."""
    slug, classes = tenant_from_record(tenant).slug, await _load_classes(ports, tenant)
    writer, digests = CatalogWriter(ports, object_store, result), dict[Scope, Digest]()
    await writer.load_existing(layout.tenant_prefix(slug))
    templates = {
        template.id: template_from_record(template).slug
        async for template in iter_records(ports, tenant.id, RecordType.TEMPLATE)
    }
    scopes = {Scope(tenant.id, ScopeKind.DEFAULTS, ""): DEFAULTS_SLUG}
    scopes |= {Scope(tenant.id, ScopeKind.TEMPLATE, id): name for id, name in templates.items()}
    for chunk in _chunks(scopes, _BATCH_SIZE):
        layers = {scope: scopes[scope] for scope in chunk}
        plans = await _plan_layers(ports, tenant, classes, layers, result)
        await writer.write_plan(_merge_plans(plans))
        digests |= _reviewed_digests(plans)
    async for batch in _batches(iter_records(ports, tenant.id, RecordType.AGENT)):
        plans = await _plan_agents(ports, slug, classes, templates, batch, result)
        await writer.write_plan(_merge_plans(plans))
        digests |= _reviewed_digests(plans)
        if progress is not None:
            progress.add(len(batch))
    await writer.finish()
    result.tenants += 1
    return digests


async def export_scopes(
    ports: Ports,
    object_store: ObjectStore,
    tenant: Record,
    changed: ChangedScopes,
    result: ExportResult,
) -> bool:
    """Export only the changed scopes; return False if that is not enough.

    Nothing is written then. It is not enough if a scope was deleted, if its reviewed files changed
    (other scopes may share them), or if a managed file of a template or the defaults changed (it
    affects all followers).
    """
    classes, partial_result = await _load_classes(ports, tenant), ExportResult()
    if any(
        _affects_followers(classes, scope, changed_scope)
        for scope, changed_scope in changed.items()
    ):
        return False
    loaded = await _load_slugs(ports, tenant, changed)
    if loaded is None:
        return False
    layers, templates, agents = loaded
    plans = await _plan_layers(ports, tenant, classes, layers, partial_result)
    slug = tenant_from_record(tenant).slug
    plans |= await _plan_agents(ports, slug, classes, templates, agents, partial_result)
    if any(
        changed[scope].reviewed_digest != digest
        for scope, digest in _reviewed_digests(plans).items()
    ):
        return False
    names = {agent.id: agent_from_record(agent).slug for agent in agents}
    for scope, plan in plans.items():
        prefix = (
            layout.agent_prefix(slug, names[scope.name])
            if scope.kind is ScopeKind.AGENT
            else layout.template_prefix(slug, layers[scope])
        )
        writer = CatalogWriter(ports, object_store, result)
        await writer.load_existing(prefix)
        await writer.write_plan({key: plan[key] for key in plan if key.startswith(prefix)})
        await writer.finish()
    result.left_out += partial_result.left_out
    result.tenants += 1
    return True


def _affects_followers(classes: FileClassRules, scope: Scope, changed: ChangedScope) -> bool:
    managed = any(classes.class_of(path) is FileClass.MANAGED for path in changed.paths)
    return managed and scope.kind is not ScopeKind.AGENT


async def _load_slugs(
    ports: Ports, tenant: Record, scopes: Collection[Scope]
) -> tuple[dict[Scope, str], dict[str, str], list[Record]] | None:
    """Load layer slugs, template slugs by id and agents; None if a record is missing."""
    ids = [scope.name for scope in scopes if scope.kind is ScopeKind.AGENT]
    agents = [
        record for record in await ports.records.get(tenant.id, RecordType.AGENT, ids) if record
    ]
    template_ids = {scope.name for scope in scopes if scope.kind is ScopeKind.TEMPLATE}
    ids_to_load = sorted(
        template_ids | {agent_from_record(agent).template_id or "" for agent in agents} - {""}
    )
    template_records = await ports.records.get(tenant.id, RecordType.TEMPLATE, ids_to_load)
    templates = {
        record.id: template_from_record(record).slug for record in template_records if record
    }
    if len(agents) < len(ids) or not template_ids <= templates.keys():
        return None
    upper_scopes = [scope for scope in scopes if scope.kind is not ScopeKind.AGENT]
    return (
        {record: templates.get(record.name, DEFAULTS_SLUG) for record in upper_scopes},
        templates,
        agents,
    )


async def _load_classes(ports: Ports, tenant: Record) -> FileClassRules:
    [policy] = await ports.records.get(tenant.id, RecordType.POLICY, [POLICY_ID])
    return policy_from_record(policy).classes


def _merge_plans(plans: Plans) -> CatalogPlan:
    return {key: plan[key] for plan in plans.values() for key in plan}


def _reviewed_digests(plans: Plans) -> dict[Scope, Digest]:
    return {scope: layout.reviewed_keys_digest(plan) for scope, plan in plans.items()}


async def _plan_layers(
    ports: Ports,
    tenant: Record,
    classes: FileClassRules,
    scopes: Mapping[Scope, str],
    result: ExportResult,
) -> Plans:
    """Plan the objects of the defaults and templates."""
    [defaults_record] = await ports.records.get(tenant.id, RecordType.DEFAULTS, [tenant.id])
    version = seed_state_from_record(defaults_record).version
    slug, plans = tenant_from_record(tenant).slug, dict[Scope, CatalogPlan]()
    for tree in await ports.trees.read(tuple(scopes)) if scopes else ():
        layer = CatalogLayer(scopes[tree.scope], tree)
        _record_left_out(result, f"{slug}/_catalog/{layer.slug}", tree)
        seed_version = version * (layer.slug == DEFAULTS_SLUG)
        plans[tree.scope] = layout.plan_layer(slug, classes, layer, seed_version)
    return plans


async def _plan_agents(
    ports: Ports,
    tenant: str,
    classes: FileClassRules,
    templates: Mapping[str, str],
    agents: Sequence[Record],
    result: ExportResult,
) -> Plans:
    """Plan the objects of these agents with one read of their trees."""
    fields = [agent_from_record(agent) for agent in agents]
    agent_scopes = [Scope(agent.tenant, ScopeKind.AGENT, agent.id) for agent in agents]
    pins = [
        Scope(agent.tenant, ScopeKind.PINS, item.pins or "")
        for agent, item in zip(agents, fields, strict=True)
    ]
    scopes = tuple(dict.fromkeys((*agent_scopes, *pins)))
    trees = dict(zip(scopes, await ports.trees.read(scopes) if scopes else (), strict=True))
    served = await load_served_files(ports, classes, agents, trees)
    plans: Plans = {}
    for agent, item, scope, pinset in zip(agents, fields, agent_scopes, pins, strict=True):
        # A template created since the listing is exported with its own change.
        template = templates.get(item.template_id or "", DEFAULTS_SLUG)
        slug, tree = item.slug, trees[scope]
        _record_left_out(result, f"{tenant}/{slug}", tree)
        served_files = served.get(agent.id, {})
        catalog_agent = CatalogAgent(
            slug, tree, agent.created_at, template, trees[pinset], served_files
        )
        plans[scope] = layout.plan_agent(tenant, classes, catalog_agent)
    return plans


def _record_left_out(result: ExportResult, prefix: str, tree: Tree) -> None:
    result.left_out += [f"{prefix}/{path}" for path in layout.omitted_paths(tree)]


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


async def _batches(items: AsyncIterator[Item]) -> AsyncIterator[list[Item]]:
    batch: list[Item] = []
    async for item in items:
        batch.append(item)
        if len(batch) == _BATCH_SIZE:
            yield batch
            batch = []
    if batch:
        yield batch


async def _get_tenant(ports: Ports, slug: str) -> Record:
    tenant = await find_by_slug(ports, slug)
    if tenant is None:
        raise NotFound(f"no such tenant: {slug}")
    return tenant


async def _iter_tenants(ports: Ports, tenants: Sequence[Record] | None) -> AsyncIterator[Record]:
    if tenants is None:
        async for tenant in iter_records(ports, "", RecordType.TENANT):
            yield tenant
    else:
        for tenant in tenants:
            yield tenant


async def _count_agents(ports: Ports, tenants: Sequence[Record] | None) -> int:
    """Count the agents to export."""
    total = 0
    async for tenant in _iter_tenants(ports, tenants):
        total += sum([1 async for _ in iter_records(ports, tenant.id, RecordType.AGENT)])
    return total
