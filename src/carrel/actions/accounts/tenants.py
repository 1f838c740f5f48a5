"""Tenants: the accounts that own all data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.accounts import keys, people
from carrel.actions.accounts.credentials import hash_token, key_unique_key
from carrel.actions.overlay import default_files
from carrel.actions.overlay.paired_agents import draft_tenant_renamed
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    commit_changes,
    get_record,
    load_collection_revisions,
    record_after,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import PLATFORM, Actor, CredentialKind, Role
from carrel.core.accounts import PersonRecord, TenantRecord, tenant_from_record
from carrel.core.errors import Conflict, NotFound
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import (
    Record,
    RecordChange,
    RecordType,
    encode_body,
    global_unique_key,
)
from carrel.core.text_validation import parse_unreserved_slug, single_line
from carrel.ports import Ports

DEFAULT_TENANT_SLUG: Final = "default"
"""Slug of the tenant created in an empty store."""


@dataclass(frozen=True, slots=True)
class NewTenant:
    tenant: Record
    owner: Record
    token: str
    """The owner's token, returned only here."""


async def create(  # noqa: PLR0913 - fields of the tenant and its owner
    ports: Ports,
    slug: str,
    name: str,
    owner_name: str,
    owner_email: str,
    *,
    token: str | None = None,
    idempotency_key: IdempotencyKey | None = None,
) -> NewTenant:
    """Create a tenant, its owner, the owner's key and the default files in one commit.

    Raises Conflict if the slug is in use.
    """
    id, person = ports.clock.new_id("ten"), ports.clock.new_id("per")
    tenant = _tenant_change(
        id, TenantRecord(parse_unreserved_slug(slug), single_line(name, "name"))
    )
    first_owner = await people.validate_person(PersonRecord(owner_name, owner_email, Role.OWNER))
    owner = people.person_change(id, person, first_owner)
    owner_key = keys.new_key(
        ports, id, keys.KeySpec("owner", CredentialKind.PERSON, person=person), token
    )
    seeded, drafts = await default_files.seed_new_tenant(ports, id, Redactor({}))
    changes = [tenant, owner, owner_key.change, seeded]
    committed_at = await commit_changes(
        ports,
        PLATFORM.name,
        "create the tenant",
        changes,
        idempotency_key=idempotency_key,
        drafts=drafts,
    )
    return NewTenant(
        record_after(tenant, committed_at), record_after(owner, committed_at), owner_key.token
    )


async def bootstrap(ports: Ports, owner_token: str | None = None) -> NewTenant | None:
    """Create the first tenant in an empty store; return it if this call created it.

    If `owner_token` is given, it is valid for the first tenant afterwards, even if that existed.
    """
    created = None
    if await find_by_slug(ports, DEFAULT_TENANT_SLUG) is None:
        try:
            created = await create(
                ports, DEFAULT_TENANT_SLUG, "Default", "Owner", "owner@localhost", token=owner_token
            )
        except Conflict:
            created = None
    if created is None and owner_token:
        await _ensure_owner_token(ports, owner_token)
    return created


async def _ensure_owner_token(ports: Ports, token: str) -> None:
    """Make the token valid for an owner of the first tenant."""
    key_unique = key_unique_key(hash_token(token))
    [existing] = await ports.records.get_by_unique_key([key_unique])
    if existing is not None:
        return
    owner = await get_first_owner(ports, DEFAULT_TENANT_SLUG)
    spec = keys.KeySpec("owner", CredentialKind.PERSON, person=owner.id)
    owner_key = keys.new_key(ports, owner.tenant, spec, token)
    try:
        await commit_changes(ports, PLATFORM.name, "add the owner's token", [owner_key.change])
    except Conflict:
        return


async def find_by_slug(ports: Ports, slug: str) -> Record | None:
    [tenant] = await ports.records.get_by_unique_key(
        [global_unique_key(RecordType.TENANT, "slug", slug)]
    )
    return tenant


async def get_first_owner(ports: Ports, slug: str) -> Record:
    """Return the tenant's oldest owner. Raises NotFound for an unknown tenant."""
    tenant = await find_by_slug(ports, slug)
    if tenant is None:
        raise NotFound(f"no such tenant: {slug}")
    [owner] = await ports.records.list(
        tenant.id, RecordType.PERSON, index_key=people.OWNERS_INDEX, limit=1
    )
    return owner


async def get_current(ports: Ports, actor: Actor) -> Record:
    return await get_record(ports, actor.tenant, RecordType.TENANT, actor.tenant)


@retry_on_conflict()
async def rename(
    ports: Ports, actor: Actor, name: str, idempotency_key: IdempotencyKey | None = None
) -> Record:
    existing = await get_current(ports, actor)
    rules = await load_rules(ports, existing.id)
    name = single_line(rules.redact_fields(name), "name")
    tenant = tenant_from_record(existing)
    if tenant.name == name:
        return existing
    change = _tenant_change(existing.id, replace(tenant, name=name), existing)
    expected_revisions = await load_collection_revisions(
        ports, existing.id, (RecordType.AGENT, RecordType.PERSON)
    )
    committed_at = await commit_changes(
        ports,
        actor,
        "rename the tenant",
        [change],
        collection_revisions=[*expected_revisions, *rules.collection_revisions],
        idempotency_key=idempotency_key,
        drafts=await draft_tenant_renamed(ports, rules, record_after(change, 0, existing)),
    )
    return record_after(change, committed_at, existing)


def _tenant_change(id: str, tenant: TenantRecord, existing: Record | None = None) -> RecordChange:
    return RecordChange(
        id,
        RecordType.TENANT,
        id,
        encode_body(tenant, existing),
        existing.revision if existing else 0,
        unique_keys=(global_unique_key(RecordType.TENANT, "slug", tenant.slug),),
    )
