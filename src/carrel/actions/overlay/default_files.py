"""A tenant's defaults: seeded when it is made, and brought up to date without touching an edit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

from msgspec import Struct

from carrel.actions.policy.tenant_rules import Rules, rules_of
from carrel.actions.records import Drafts, commit_changes, each, find, insist
from carrel.core.access import Actor
from carrel.core.errors import Missing, Refusal
from carrel.core.identifiers import Digest, Kind, Path, Scope, digest
from carrel.core.overlay import default_files as seeding
from carrel.core.overlay.default_files import Packaged, Plan, Seeded
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.record import Change, Noun, Record
from carrel.core.store.tree import Entry, Expect, ReceiptKey, Tree, Write
from carrel.defaults import FILES, VERSION
from carrel.ports import World

CARREL: Final = "carrel"
"""Who does what nobody asked for."""


class Standing(Struct, frozen=True):
    """What we package, what a tenant has had of it, and what is to become of each file."""

    seeded: Seeded
    plan: Plan
    packaged: int
    """The version that we come with."""
    revision: int
    """Of the record that says what was seeded; 0 where there is none yet."""

    @property
    def current(self) -> bool:
        """Whether there is nothing to write and nothing to remember."""
        return self.revision > 0 and not self.plan.writes and self.plan.seeded == self.seeded


class Brought(Struct, frozen=True):
    """What became of one tenant's defaults."""

    tenant: str
    written: tuple[Path, ...] = ()
    offered: tuple[Path, ...] = ()
    problem: Refusal | None = None


class _Package(Struct, frozen=True):
    """The packaged files as they are stored here: secrets never come in, not even in ours."""

    contents: Mapping[Path, bytes]
    packaged: Packaged

    @classmethod
    def under(cls, redactor: Redactor) -> _Package:
        contents = {Path(name): redactor.redact(text).content for name, text in FILES.items()}
        digests = {path: digest(content) for path, content in contents.items()}
        return cls(contents, Packaged(VERSION, digests))


async def first(world: World, tenant: str, redactor: Redactor) -> tuple[Change, Drafts]:
    """What a new tenant begins with, for the commit that makes it."""
    package = _Package.under(redactor)
    plan = seeding.plan(package.packaged, Seeded(), {})
    empty = Tree(_scope(tenant), 0, {})
    return _change(tenant, plan.seeded, 0), await _drafts(world, package, plan.writes, empty)


async def status(world: World, actor: Actor) -> Standing:
    rules = await rules_of(world, actor.tenant)
    standing, _, _ = await _standing(world, actor.tenant, rules)
    return standing


async def update(
    world: World,
    actor: Actor,
    take: Collection[Path] = (),
    keep: Collection[Path] = (),
    receipt: ReceiptKey | None = None,
) -> Standing:
    """Let every file follow that is still ours; take what is offered only where it is named.

    What is to be kept is not offered again until there is something newer. Returns how it stood
    before. Raises Missing for a path of which nothing is offered.
    """
    return await _update(world, actor, take, keep, receipt)


async def tenants(world: World, slug: str | None = None) -> Mapping[str, str]:
    """The ids of all tenants by their slugs, or of one. Raises Missing."""
    found = {one.body["slug"]: one.id async for one in each(world, "", Noun.TENANT)}
    if slug is None:
        return found
    if slug not in found:
        raise Missing(f"there is no tenant {slug}")
    return {slug: found[slug]}


async def follow(world: World) -> AsyncIterator[Brought]:
    """The same for every tenant; what one is refused stops no other."""
    async for tenant in each(world, "", Noun.TENANT):
        try:
            was = await _update(world, Actor(tenant.id, CARREL))
            written, offered = tuple(was.plan.writes), tuple(was.plan.offers)
            yield Brought(tenant.body["slug"], written, offered)
        except Refusal as problem:
            yield Brought(tenant.body["slug"], problem=problem)


async def _update(
    world: World,
    actor: Actor,
    take: Collection[Path] = (),
    keep: Collection[Path] = (),
    receipt: ReceiptKey | None = None,
) -> Standing:
    tenant = actor.tenant

    async def attempt() -> Standing:
        rules = await rules_of(world, tenant)
        standing, package, tree = await _standing(world, tenant, rules)
        offers = _asked_for(standing.plan.offers, (*take, *keep))
        after = standing.plan.seeded
        for path in (*take, *keep):
            after = seeding.reviewed(after, path, offers[path])
        writes = {**standing.plan.writes, **{path: offers[path] for path in take}}
        if standing.current and not take and not keep:
            return standing
        await commit_changes(
            world,
            actor.name,
            f"bring the defaults to version {after.version}",
            [_change(tenant, after, standing.revision)],
            shelves=rules.shelves,
            receipt=receipt,
            drafts=await _drafts(world, package, writes, tree),
        )
        return standing

    return await insist(attempt)


def _asked_for(offers: Mapping[Path, Digest], paths: Collection[Path]) -> Mapping[Path, Digest]:
    for path in paths:
        if path not in offers:
            raise Missing(f"nothing newer is offered for {path}")
    return offers


async def _standing(world: World, tenant: str, rules: Rules) -> tuple[Standing, _Package, Tree]:
    await find(world, tenant, Noun.TENANT, tenant)
    [record] = await world.records.get(tenant, Noun.DEFAULTS, [tenant])
    seeded, package = _seeded(record), _Package.under(rules.redactor)
    paths = {*package.packaged.files, *seeded.files}
    [tree] = await world.trees.read([_scope(tenant)], paths)
    held = {path: entry.blob.digest for path in paths if (entry := tree.entry(path))}
    plan = seeding.plan(package.packaged, seeded, held)
    return Standing(seeded, plan, VERSION, record.revision if record else 0), package, tree


async def _drafts(
    world: World, package: _Package, writes: Mapping[Path, Digest | None], tree: Tree
) -> Drafts:
    """Written only over what was seen."""
    wanted = [path for path, digest in writes.items() if digest is not None]
    blobs = await world.blobs.put([package.contents[path] for path in wanted])
    entries = {path: Entry(blob) for path, blob in zip(wanted, blobs, strict=True)}
    return Drafts(
        tuple(Write(tree.scope, path, entries.get(path)) for path in writes),
        tuple(Expect(tree.scope, path, tree.version(path)) for path in writes),
    )


def _scope(tenant: str) -> Scope:
    return Scope(tenant, Kind.DEFAULTS, "")


def _change(tenant: str, seeded: Seeded, expected: int) -> Change:
    files = {path.text: digest for path, digest in seeded.files.items()}
    return Change(
        tenant, Noun.DEFAULTS, tenant, {"version": seeded.version, "files": files}, expected
    )


def _seeded(record: Record | None) -> Seeded:
    if record is None:
        return Seeded()
    files = {Path(path): digest for path, digest in record.body["files"].items()}
    return Seeded(record.body["version"], files)
