"""A tenant's defaults: seeded when it is made, and brought up to date without touching an edit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

from msgspec import Struct

from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import FileDrafts, commit_changes, find, iter_records, retry_while_busy
from carrel.core.access import Actor
from carrel.core.errors import NotFound, Refusal
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind, digest
from carrel.core.overlay import default_files
from carrel.core.overlay.default_files import DefaultsPlan, PackagedFile, SeedState
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import Entry, Expect, IdempotencyKey, Tree, Write
from carrel.defaults import FILES, VERSION
from carrel.ports import Ports

CARREL: Final = "carrel"
"""Who does what nobody asked for."""


class DefaultsStatus(Struct, frozen=True):
    """What we package, what a tenant has had of it, and what is to become of each file."""

    seeded: SeedState
    plan: DefaultsPlan
    packaged: int
    """The version that we come with."""
    revision: int
    """Of the record that says what was seeded; 0 where there is none yet."""

    @property
    def current(self) -> bool:
        """Whether there is nothing to write and nothing to remember."""
        return self.revision > 0 and not self.plan.writes and self.plan.seeded == self.seeded


class DefaultsUpdate(Struct, frozen=True):
    """What became of one tenant's defaults."""

    tenant: str
    written: tuple[Path, ...] = ()
    offered: tuple[Path, ...] = ()
    problem: Refusal | None = None


class _Package(Struct, frozen=True):
    """The packaged files as they are stored here: secrets never come in, not even in ours."""

    contents: Mapping[Path, bytes]
    packaged: PackagedFile

    @classmethod
    def under(cls, redactor: Redactor) -> _Package:
        contents = {Path(name): redactor.redact(text).content for name, text in FILES.items()}
        digests = {path: digest(content) for path, content in contents.items()}
        return cls(contents, PackagedFile(VERSION, digests))


async def seed_new_tenant(
    ports: Ports, tenant: str, redactor: Redactor
) -> tuple[RecordChange, FileDrafts]:
    """What a new tenant begins with, for the commit that makes it."""
    package = _Package.under(redactor)
    plan = default_files.plan(package.packaged, SeedState(), {})
    empty = Tree(_scope(tenant), 0, {})
    return _change(tenant, plan.seeded, 0), await _drafts(ports, package, plan.writes, empty)


async def status(ports: Ports, actor: Actor) -> DefaultsStatus:
    rules = await load_rules(ports, actor.tenant)
    standing, _, _ = await _standing(ports, actor.tenant, rules)
    return standing


async def update(
    ports: Ports,
    actor: Actor,
    take: Collection[Path] = (),
    keep: Collection[Path] = (),
    receipt: IdempotencyKey | None = None,
) -> DefaultsStatus:
    """Let every file follow that is still ours; take what is offered only where it is named.

    What is to be kept is not offered again until there is something newer. Returns how it stood
    before. Raises Missing for a path of which nothing is offered.
    """
    return await _update(ports, actor, take, keep, receipt)


async def tenants(ports: Ports, slug: str | None = None) -> Mapping[str, str]:
    """The ids of all tenants by their slugs, or of one. Raises Missing."""
    found = {one.body["slug"]: one.id async for one in iter_records(ports, "", RecordType.TENANT)}
    if slug is None:
        return found
    if slug not in found:
        raise NotFound(f"there is no tenant {slug}")
    return {slug: found[slug]}


async def update_all_tenants(ports: Ports) -> AsyncIterator[DefaultsUpdate]:
    """The same for every tenant; what one is refused stops no other."""
    async for tenant in iter_records(ports, "", RecordType.TENANT):
        try:
            was = await _update(ports, Actor(tenant.id, CARREL))
            written, offered = tuple(was.plan.writes), tuple(was.plan.offers)
            yield DefaultsUpdate(tenant.body["slug"], written, offered)
        except Refusal as problem:
            yield DefaultsUpdate(tenant.body["slug"], problem=problem)


async def _update(
    ports: Ports,
    actor: Actor,
    take: Collection[Path] = (),
    keep: Collection[Path] = (),
    receipt: IdempotencyKey | None = None,
) -> DefaultsStatus:
    tenant = actor.tenant

    async def attempt() -> DefaultsStatus:
        rules = await load_rules(ports, tenant)
        standing, package, tree = await _standing(ports, tenant, rules)
        offers = _asked_for(standing.plan.offers, (*take, *keep))
        after = standing.plan.seeded
        for path in (*take, *keep):
            after = default_files.reviewed(after, path, offers[path])
        writes = {**standing.plan.writes, **{path: offers[path] for path in take}}
        if standing.current and not take and not keep:
            return standing
        await commit_changes(
            ports,
            actor.name,
            f"bring the defaults to version {after.version}",
            [_change(tenant, after, standing.revision)],
            collection_revisions=rules.shelves,
            receipt=receipt,
            drafts=await _drafts(ports, package, writes, tree),
        )
        return standing

    return await retry_while_busy(attempt)


def _asked_for(offers: Mapping[Path, Digest], paths: Collection[Path]) -> Mapping[Path, Digest]:
    for path in paths:
        if path not in offers:
            raise NotFound(f"nothing newer is offered for {path}")
    return offers


async def _standing(
    ports: Ports, tenant: str, rules: TenantRules
) -> tuple[DefaultsStatus, _Package, Tree]:
    await find(ports, tenant, RecordType.TENANT, tenant)
    [record] = await ports.records.get(tenant, RecordType.DEFAULTS, [tenant])
    seeded, package = _seeded(record), _Package.under(rules.redactor)
    paths = {*package.packaged.files, *seeded.files}
    [tree] = await ports.trees.read([_scope(tenant)], paths)
    held = {path: entry.blob.digest for path in paths if (entry := tree.entry(path))}
    plan = default_files.plan(package.packaged, seeded, held)
    return DefaultsStatus(seeded, plan, VERSION, record.revision if record else 0), package, tree


async def _drafts(
    ports: Ports, package: _Package, writes: Mapping[Path, Digest | None], tree: Tree
) -> FileDrafts:
    """Written only over what was seen."""
    wanted = [path for path, digest in writes.items() if digest is not None]
    blobs = await ports.blobs.put([package.contents[path] for path in wanted])
    entries = {path: Entry(blob) for path, blob in zip(wanted, blobs, strict=True)}
    return FileDrafts(
        tuple(Write(tree.scope, path, entries.get(path)) for path in writes),
        tuple(Expect(tree.scope, path, tree.version(path)) for path in writes),
    )


def _scope(tenant: str) -> Scope:
    return Scope(tenant, ScopeKind.DEFAULTS, "")


def _change(tenant: str, seeded: SeedState, expected: int) -> RecordChange:
    files = {path.text: digest for path, digest in seeded.files.items()}
    return RecordChange(
        tenant, RecordType.DEFAULTS, tenant, {"version": seeded.version, "files": files}, expected
    )


def _seeded(record: Record | None) -> SeedState:
    if record is None:
        return SeedState()
    files = {Path(path): digest for path, digest in record.body["files"].items()}
    return SeedState(record.body["version"], files)
