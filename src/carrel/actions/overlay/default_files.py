"""Default files of a tenant: seeded at creation, updated without touching edits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

from msgspec import Struct

from carrel.actions.overlay.path_clashes import draft_path_check, is_occupied
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import (
    NO_DRAFTS,
    FileDrafts,
    commit_changes,
    get_record,
    iter_records,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.accounts import tenant_from_record
from carrel.core.errors import NotFound, Refusal
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind, digest
from carrel.core.overlay import default_files
from carrel.core.overlay.default_files import DefaultsPlan, PackagedFiles, SeedState
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.commit import Expect, Write
from carrel.core.store.entry import Entry
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import RecordChange, RecordType
from carrel.core.store.tree import Tree
from carrel.defaults import FILES, VERSION
from carrel.ports import Ports

SERVER_AUTHOR: Final = "carrel"
"""Author of updates that the server makes by itself."""


class DefaultsStatus(Struct, frozen=True):
    """Packaged defaults, seeded state and the planned writes of a tenant."""

    seeded: SeedState
    plan: DefaultsPlan
    packaged: int
    """Version of the packaged defaults."""
    revision: int
    """Revision of the record of the seeded state; 0 if there is none."""

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to write and nothing to record."""
        return self.revision > 0 and not self.plan.writes and self.plan.seed_state == self.seeded


class DefaultsUpdate(Struct, frozen=True):
    """Result of updating one tenant's defaults."""

    tenant: str
    written: tuple[Path, ...] = ()
    offers: tuple[Path, ...] = ()
    problem: Refusal | None = None


class _Package(Struct, frozen=True):
    """Packaged files after redaction with the tenant's rules."""

    contents: Mapping[Path, bytes]
    packaged: PackagedFiles

    @classmethod
    def load_redacted(cls, redactor: Redactor) -> _Package:
        contents = {Path(name): redactor.redact(text).content for name, text in FILES.items()}
        digests = {path: digest(content) for path, content in contents.items()}
        return cls(contents, PackagedFiles(VERSION, digests))


async def seed_new_tenant(
    ports: Ports, tenant: str, redactor: Redactor
) -> tuple[RecordChange, FileDrafts]:
    """Return the record change and file drafts for the commit that creates a tenant."""
    package = _Package.load_redacted(redactor)
    plan = default_files.plan_defaults(package.packaged, SeedState(), {})
    empty_tree = Tree(_scope(tenant), 0, {})
    return default_files.seed_state_change(tenant, plan.seed_state, 0), await _drafts(
        ports, package, plan.writes, empty_tree
    )


async def load_status(ports: Ports, actor: Actor) -> DefaultsStatus:
    rules = await load_rules(ports, actor.tenant)
    defaults_status, _, _ = await _load_status(ports, actor.tenant, rules)
    return defaults_status


async def update(
    ports: Ports,
    actor: Actor,
    accept_paths: Collection[Path] = (),
    dismiss_paths: Collection[Path] = (),
    idempotency_key: IdempotencyKey | None = None,
) -> DefaultsStatus:
    """Update every unedited default; accept or dismiss offers only as named.

    A dismissed version is not offered again until there is a newer one. Returns the status before
    the update. Raises NotFound for a path without an offer, Conflict for one that cannot be a file.
    """
    return await _apply_update(ports, actor, accept_paths, dismiss_paths, idempotency_key)


async def list_tenant_ids(ports: Ports, slug: str | None = None) -> Mapping[str, str]:
    """Return tenant ids by slug, of all tenants or one. Raises NotFound."""
    ids_by_slug = {
        tenant_from_record(tenant).slug: tenant.id
        async for tenant in iter_records(ports, "", RecordType.TENANT)
    }
    if slug is None:
        return ids_by_slug
    if slug not in ids_by_slug:
        raise NotFound(f"no such tenant: {slug}")
    return {slug: ids_by_slug[slug]}


async def update_all_tenants(ports: Ports) -> AsyncIterator[DefaultsUpdate]:
    """Update the defaults of every tenant; a refusal for one does not stop the others."""
    async for tenant in iter_records(ports, "", RecordType.TENANT):
        slug = tenant_from_record(tenant).slug
        try:
            status_before = await _apply_update(ports, Actor(tenant.id, SERVER_AUTHOR))
            written, offers = tuple(status_before.plan.writes), tuple(status_before.plan.offers)
            yield DefaultsUpdate(slug, written, offers)
        except Refusal as problem:
            yield DefaultsUpdate(slug, problem=problem)


@retry_on_conflict()
async def _apply_update(
    ports: Ports,
    actor: Actor,
    accept_paths: Collection[Path] = (),
    dismiss_paths: Collection[Path] = (),
    idempotency_key: IdempotencyKey | None = None,
) -> DefaultsStatus:
    tenant = actor.tenant
    rules = await load_rules(ports, tenant)
    current, package, tree = await _load_status(ports, tenant, rules)
    offers = _require_offered(current.plan.offers, (*accept_paths, *dismiss_paths))
    after = current.plan.seed_state
    for path in (*accept_paths, *dismiss_paths):
        after = default_files.mark_reviewed(after, path, offers[path])
    writes = {**current.plan.writes, **{path: offers[path] for path in accept_paths}}
    if current.is_current and not accept_paths and not dismiss_paths:
        return current
    await commit_changes(
        ports,
        actor,
        f"update the defaults to version {after.version}",
        [default_files.seed_state_change(tenant, after, current.revision)],
        collection_revisions=rules.collection_revisions,
        idempotency_key=idempotency_key,
        drafts=await _draft_checks(ports, rules, writes, tree)
        + await _drafts(ports, package, writes, tree),
    )
    return current


def _require_offered(
    offers: Mapping[Path, Digest], paths: Collection[Path]
) -> Mapping[Path, Digest]:
    for path in paths:
        if path not in offers:
            raise NotFound(f"no update is available for {path}")
    return offers


async def _load_status(
    ports: Ports, tenant: str, rules: TenantRules
) -> tuple[DefaultsStatus, _Package, Tree]:
    await get_record(ports, tenant, RecordType.TENANT, tenant)
    [record] = await ports.records.get(tenant, RecordType.DEFAULTS, [tenant])
    seeded, package = (
        default_files.seed_state_from_record(record),
        _Package.load_redacted(rules.redactor),
    )
    paths = {*package.packaged.files, *seeded.files}
    [tree] = await ports.trees.read([_scope(tenant)], paths)
    stored_digests = {path: entry.blob.digest for path in paths if (entry := tree.entry(path))}
    new_paths = default_files.new_paths(package.packaged, seeded, stored_digests)
    classes = rules.policy.classes
    occupied = [path for path in new_paths if await is_occupied(ports, tree.scope, path, classes)]
    plan = default_files.plan_defaults(package.packaged, seeded, stored_digests, occupied)
    return DefaultsStatus(seeded, plan, VERSION, record.revision if record else 0), package, tree


async def _drafts(
    ports: Ports, package: _Package, writes: Mapping[Path, Digest | None], tree: Tree
) -> FileDrafts:
    """Draft the writes, expecting the versions that were read."""
    paths_to_store = [path for path, digest in writes.items() if digest is not None]
    blobs = await ports.blobs.put([package.contents[path] for path in paths_to_store])
    entries = {path: Entry(blob) for path, blob in zip(paths_to_store, blobs, strict=True)}
    return FileDrafts(
        tuple(Write(tree.scope, path, entries.get(path)) for path in writes),
        tuple(Expect(tree.scope, path, tree.version(path)) for path in writes),
    )


async def _draft_checks(
    ports: Ports, rules: TenantRules, writes: Mapping[Path, Digest | None], tree: Tree
) -> FileDrafts:
    """Check that new files may be files, and let the commit check it once more."""
    checks = NO_DRAFTS
    for path, new_content in writes.items():
        if new_content is not None:
            checks += await draft_path_check(ports, (tree.scope,), path, rules.policy.classes)
    return checks


def _scope(tenant: str) -> Scope:
    return Scope(tenant, ScopeKind.DEFAULTS, "")
