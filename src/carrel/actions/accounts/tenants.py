"""Tenants: the accounts that everything belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carrel.actions.accounts import keys, people
from carrel.actions.accounts.credentials import hash_of, key_handle
from carrel.actions.accounts.people import Profile
from carrel.actions.overlay import default_files
from carrel.actions.overlay.pairing import tenant_renamed
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    collection_revisions,
    commit_changes,
    find,
    record_after,
    retry_while_busy,
)
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.errors import Conflict, NotFound
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.record import Record, RecordChange, RecordType, global_unique_key
from carrel.core.store.tree import IdempotencyKey
from carrel.core.text_validation import free_slug, single_line
from carrel.ports import Ports

FIRST: Final = "default"
"""The slug of the tenant that an empty store is given."""

_PLATFORM: Final = "platform"


@dataclass(frozen=True, slots=True)
class NewTenant:
    tenant: Record
    owner: Record
    token: str
    """The owner's, shown this once."""


async def create(  # noqa: PLR0913 - what a tenant begins with
    ports: Ports,
    slug: str,
    name: str,
    owner_name: str,
    owner_email: str,
    *,
    token: str | None = None,
    receipt: IdempotencyKey | None = None,
) -> NewTenant:
    """Make a tenant, its owner and the owner's key, its defaults seeded, all in one.

    Raises Taken for a known slug.
    """
    id, person = ports.clock.new_id("ten"), ports.clock.new_id("per")
    tenant = _change(id, 0, free_slug(slug), single_line(name, "name"))
    profile = Profile(owner_name, owner_email, Role.OWNER)
    owner = people.change_of(id, person, 0, await people.body_of(profile))
    made = keys.new_key(
        ports, id, keys.KeySpec("owner", CredentialKind.PERSON, person=person), token
    )
    seeded, drafts = await default_files.seed_new_tenant(ports, id, Redactor({}))
    changes = [tenant, owner, made.change, seeded]
    at = await commit_changes(
        ports, _PLATFORM, "create the tenant", changes, receipt=receipt, drafts=drafts
    )
    return NewTenant(record_after(tenant, at), record_after(owner, at), made.token)


async def bootstrap(ports: Ports, owner_token: str | None = None) -> NewTenant | None:
    """Give an empty store its first tenant; of several that try at once, one does and is told so.

    A token that is given opens the first tenant afterwards, whoever made it and when.
    """
    created = None
    if await by_slug(ports, FIRST) is None:
        try:
            created = await create(
                ports, FIRST, "Default", "Owner", "owner@localhost", token=owner_token
            )
        except Conflict:
            created = None
    if created is None and owner_token:
        await _admit(ports, owner_token)
    return created


async def _admit(ports: Ports, token: str) -> None:
    """Make sure that an owner of the first tenant holds this token."""
    handle = key_handle(hash_of(token))
    [known] = await ports.records.get_by_unique_key([handle])
    if known is not None:
        return
    owner = await first_owner(ports, FIRST)
    holding = keys.KeySpec("owner", CredentialKind.PERSON, person=owner.id)
    made = keys.new_key(ports, owner.tenant, holding, token)
    try:
        await commit_changes(ports, _PLATFORM, "admit the owner's token", [made.change])
    except Conflict:
        return


async def by_slug(ports: Ports, slug: str) -> Record | None:
    [found] = await ports.records.get_by_unique_key(
        [global_unique_key(RecordType.TENANT, "slug", slug)]
    )
    return found


async def first_owner(ports: Ports, slug: str) -> Record:
    """The owner who has been there longest. Raises Missing where there is no such tenant."""
    tenant = await by_slug(ports, slug)
    if tenant is None:
        raise NotFound(f"there is no tenant {slug}")
    [owner] = await ports.records.list(tenant.id, RecordType.PERSON, link=people.OWNERS, limit=1)
    return owner


async def me(ports: Ports, actor: Actor) -> Record:
    return await find(ports, actor.tenant, RecordType.TENANT, actor.tenant)


async def rename(
    ports: Ports, actor: Actor, name: str, receipt: IdempotencyKey | None = None
) -> Record:
    name = single_line(name, "name")

    async def attempt() -> Record:
        was = await me(ports, actor)
        if was.body["name"] == name:
            return was
        change = _change(was.id, was.revision, was.body["slug"], name)
        rests = await collection_revisions(ports, was.id, (RecordType.AGENT, RecordType.PERSON))
        rules = await load_rules(ports, was.id)
        at = await commit_changes(
            ports,
            actor.name,
            "rename the tenant",
            [change],
            collection_revisions=[*rests, *rules.shelves],
            receipt=receipt,
            drafts=await tenant_renamed(ports, rules, record_after(change, 0, was)),
        )
        return record_after(change, at, was)

    return await retry_while_busy(attempt)


def _change(id: str, expected: int, slug: str, name: str) -> RecordChange:
    handle = global_unique_key(RecordType.TENANT, "slug", slug)
    body = {"slug": slug, "name": name}
    return RecordChange(id, RecordType.TENANT, id, body, expected, unique_keys=(handle,))
