"""Tenants: the accounts that everything belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carrel.actions.accounts import keys, people
from carrel.actions.accounts.credentials import hash_of, key_handle
from carrel.actions.accounts.people import Profile
from carrel.actions.overlay import default_files as seeds
from carrel.actions.overlay.pairing import tenant_renamed
from carrel.actions.policy.tenant_rules import rules_of
from carrel.actions.records import became, commit_changes, find, insist, shelves
from carrel.core.access import Actor, KeyKind, Role
from carrel.core.errors import Missing, Taken
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.record import Change, Noun, Record, global_handle
from carrel.core.store.tree import ReceiptKey
from carrel.core.text_validation import free_slug, line
from carrel.ports import World

FIRST: Final = "default"
"""The slug of the tenant that an empty store is given."""

_PLATFORM: Final = "platform"


@dataclass(frozen=True, slots=True)
class Created:
    tenant: Record
    owner: Record
    token: str
    """The owner's, shown this once."""


async def create(  # noqa: PLR0913 - what a tenant begins with
    world: World,
    slug: str,
    name: str,
    owner_name: str,
    owner_email: str,
    *,
    token: str | None = None,
    receipt: ReceiptKey | None = None,
) -> Created:
    """Make a tenant, its owner and the owner's key, its defaults seeded, all in one.

    Raises Taken for a known slug.
    """
    id, person = world.clock.fresh("ten"), world.clock.fresh("per")
    tenant = _change(id, 0, free_slug(slug), line(name, "name"))
    profile = Profile(owner_name, owner_email, Role.OWNER)
    owner = people.change_of(id, person, 0, await people.body_of(profile))
    made = keys.made(world, id, keys.Holding("owner", KeyKind.PERSON, person=person), token)
    seeded, drafts = await seeds.first(world, id, Redactor({}))
    changes = [tenant, owner, made.change, seeded]
    at = await commit_changes(
        world, _PLATFORM, "create the tenant", changes, receipt=receipt, drafts=drafts
    )
    return Created(became(tenant, at), became(owner, at), made.token)


async def bootstrap(world: World, owner_token: str | None = None) -> Created | None:
    """Give an empty store its first tenant; of several that try at once, one does and is told so.

    A token that is given opens the first tenant afterwards, whoever made it and when.
    """
    created = None
    if await by_slug(world, FIRST) is None:
        try:
            created = await create(
                world, FIRST, "Default", "Owner", "owner@localhost", token=owner_token
            )
        except Taken:
            created = None
    if created is None and owner_token:
        await _admit(world, owner_token)
    return created


async def _admit(world: World, token: str) -> None:
    """Make sure that an owner of the first tenant holds this token."""
    handle = key_handle(hash_of(token))
    [known] = await world.records.named([handle])
    if known is not None:
        return
    owner = await first_owner(world, FIRST)
    holding = keys.Holding("owner", KeyKind.PERSON, person=owner.id)
    made = keys.made(world, owner.tenant, holding, token)
    try:
        await commit_changes(world, _PLATFORM, "admit the owner's token", [made.change])
    except Taken:
        return


async def by_slug(world: World, slug: str) -> Record | None:
    [found] = await world.records.named([global_handle(Noun.TENANT, "slug", slug)])
    return found


async def first_owner(world: World, slug: str) -> Record:
    """The owner who has been there longest. Raises Missing where there is no such tenant."""
    tenant = await by_slug(world, slug)
    if tenant is None:
        raise Missing(f"there is no tenant {slug}")
    [owner] = await world.records.list(tenant.id, Noun.PERSON, link=people.OWNERS, limit=1)
    return owner


async def me(world: World, actor: Actor) -> Record:
    return await find(world, actor.tenant, Noun.TENANT, actor.tenant)


async def rename(
    world: World, actor: Actor, name: str, receipt: ReceiptKey | None = None
) -> Record:
    name = line(name, "name")

    async def attempt() -> Record:
        was = await me(world, actor)
        if was.body["name"] == name:
            return was
        change = _change(was.id, was.revision, was.body["slug"], name)
        rests = await shelves(world, was.id, (Noun.AGENT, Noun.PERSON))
        rules = await rules_of(world, was.id)
        at = await commit_changes(
            world,
            actor.name,
            "rename the tenant",
            [change],
            shelves=[*rests, *rules.shelves],
            receipt=receipt,
            drafts=await tenant_renamed(world, rules, became(change, 0, was)),
        )
        return became(change, at, was)

    return await insist(attempt)


def _change(id: str, expected: int, slug: str, name: str) -> Change:
    handle = global_handle(Noun.TENANT, "slug", slug)
    body = {"slug": slug, "name": name}
    return Change(id, Noun.TENANT, id, body, expected, handles=(handle,))
