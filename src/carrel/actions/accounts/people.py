"""People of a tenant; at least one of them is an owner."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final
from zoneinfo import available_timezones

from msgspec import UNSET
from msgspec.structs import replace

from carrel.actions.accounts.person_erasure import erase_person, list_paired_agents
from carrel.actions.overlay.paired_agents import draft_person_changed, draft_person_removed
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    Page,
    commit_changes,
    get_record,
    iter_records,
    list_page,
    load_collection_revision,
    load_collection_revisions,
    record_after,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import ADMIN_ROLES, Actor, Role
from carrel.core.accounts import FormerProfile, PersonRecord, person_from_record
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, ValidationError
from carrel.core.search.name_words import filter_by_name, name_index_keys
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import (
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
    deletion,
    encode_body,
    global_unique_key,
    unique_key,
)
from carrel.core.text_validation import email_key, parse_email, single_line
from carrel.ports import Ports


def by_role_index(role: Role) -> str:
    """Index key of the people with a role."""
    return f"role:{role}"


OWNERS_INDEX: Final = by_role_index(Role.OWNER)

_OWNED_TYPES: Final = (RecordType.KEY, RecordType.CODE)
"""Record types deleted together with the person who owns them."""

_EXCLUDED_TIMEZONES: Final = {"Factory", "localtime"}
_MAX_FORMER_PROFILES: Final = 100


def by_person_index(id: str) -> str:
    """Index key of the records a person owns."""
    return f"person:{id}"


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await get_record(ports, actor.tenant, RecordType.PERSON, id)


async def list_people(
    ports: Ports,
    actor: Actor,
    *,
    q: str = "",
    role: Role | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Page[Record]:
    """List people by id; `q` finds words of name and e-mail address by their beginnings."""
    matching = filter_by_name(q, *([by_role_index(role)] if role else []))
    return await list_page(
        ports, actor.tenant, RecordType.PERSON, matching=matching, cursor=cursor, limit=limit
    )


async def get_by_email(ports: Ports, actor: Actor, address: str) -> Record:
    """Get a person by e-mail address. Raises NotFound."""
    [person] = await ports.records.get_by_unique_key([_email_unique_key(actor.tenant, address)])
    if person is None:
        raise NotFound("no such person")
    return person


@retry_on_conflict()
async def create(
    ports: Ports, actor: Actor, person: PersonRecord, idempotency_key: IdempotencyKey | None = None
) -> Record:
    """Create a person.

    Raises Conflict if the e-mail address is in use, and Forbidden if the role is owner and the
    caller is not one, or if it is admin and the caller is no person.
    """
    rules = await load_rules(ports, actor.tenant)
    valid = await validate_person(rules.redact_fields(person))
    _require_person_for_sign_in(actor, None, valid)
    change = person_change(actor.tenant, ports.clock.new_id("per"), valid)
    expected_revisions = await _require_owner(ports, actor, {valid.role})
    committed_at = await commit_changes(
        ports,
        actor,
        "add a person",
        [change],
        collection_revisions=expected_revisions,
        idempotency_key=idempotency_key,
    )
    return record_after(change, committed_at)


@retry_on_conflict()
async def patch(
    ports: Ports,
    actor: Actor,
    id: str,
    fields: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Change the given fields; None clears an optional field.

    Raises Conflict if the e-mail address is in use, or if the tenant would lose its last owner, and
    Forbidden as `create`, and for a service that changes an e-mail address.
    """
    existing = await get(ports, actor, id)
    current = person_from_record(existing)
    rules = await load_rules(ports, actor.tenant)
    person = await validate_person(replace(current, **rules.redact_fields(fields)))
    if person == current:
        return existing
    if actor.person != id:
        _require_person_for_sign_in(actor, current, person)
    expected_revisions = await _require_owner(ports, actor, {current.role, person.role})
    if person.role is not Role.OWNER:
        await _require_another_owner(ports, existing, expected_revisions)
    change = person_change(existing.tenant, id, person, existing)
    expected_revisions.append(await load_collection_revision(ports, actor.tenant, RecordType.AGENT))
    drafts = await draft_person_changed(ports, rules, record_after(change, 0, existing))
    committed_at = await commit_changes(
        ports,
        actor,
        "change a person",
        [change],
        collection_revisions=[*expected_revisions, *rules.collection_revisions],
        idempotency_key=idempotency_key,
        drafts=drafts,
    )
    return record_after(change, committed_at, existing)


async def delete(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete a person with their keys, and erase their items and profile everywhere.

    Raises Conflict for the last owner.
    """
    person = await get(ports, actor, id)
    paired = await list_paired_agents(ports, person)
    await _delete_with_keys(ports, actor, id, idempotency_key)
    await erase_person(ports, person, paired)


@retry_on_conflict()
async def _delete_with_keys(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None
) -> None:
    expected_revisions = await load_collection_revisions(ports, actor.tenant, _OWNED_TYPES)
    existing = await get(ports, actor, id)
    expected_revisions += await _require_owner(ports, actor, {person_from_record(existing).role})
    await _require_another_owner(ports, existing, expected_revisions)
    deleted = [existing]
    for record_type in _OWNED_TYPES:
        deleted += [
            owned
            async for owned in iter_records(
                ports, existing.tenant, record_type, by_person_index(id)
            )
        ]
    changes = [deletion(record) for record in deleted]
    expected_revisions.append(await load_collection_revision(ports, actor.tenant, RecordType.AGENT))
    rules = await load_rules(ports, actor.tenant)
    unpaired, drafts = await draft_person_removed(ports, rules, existing)
    await commit_changes(
        ports,
        actor,
        "remove a person",
        [*changes, *unpaired],
        collection_revisions=[*expected_revisions, *rules.collection_revisions],
        idempotency_key=idempotency_key,
        drafts=drafts,
    )


async def validate_person(person: PersonRecord) -> PersonRecord:
    """Return the person with normalized fields. Raises ValidationError."""
    timezone = person.timezone
    if timezone is not None and timezone not in await asyncio.to_thread(_timezone_names):
        raise ValidationError("timezone must be an IANA zone such as Europe/Paris")
    return replace(
        person,
        name=single_line(person.name, "name"),
        email=parse_email(person.email),
        role=Role(person.role),
        title=None if person.title is None else single_line(person.title, "title"),
        pronouns=None if person.pronouns is None else single_line(person.pronouns, "pronouns"),
    )


def person_change(
    tenant: str, id: str, person: PersonRecord, existing: Record | None = None
) -> RecordChange:
    index_keys = [by_role_index(person.role)]
    unique_keys = [_email_unique_key(tenant, person.email)]
    if person.subject:
        unique_keys.append(subject_unique_key(person.subject))
        index_keys.append(by_oidc_subject_index(id))
    body = encode_body(_with_former_profiles(person, existing), existing)
    index_keys += name_index_keys(RecordType.PERSON, body)
    return RecordChange(
        tenant,
        RecordType.PERSON,
        id,
        body,
        existing.revision if existing else 0,
        unique_keys=tuple(unique_keys),
        index_keys=tuple(index_keys),
    )


def _with_former_profiles(person: PersonRecord, existing: Record | None) -> PersonRecord:
    """Return the person with the names and addresses that the record had before."""
    if existing is None:
        return person
    profiles = dict.fromkeys(person_from_record(existing).profiles)
    profiles.pop(FormerProfile(person.name, person.email), None)
    return replace(person, former=[*profiles][-_MAX_FORMER_PROFILES:] or UNSET)


def subject_unique_key(subject: str) -> str:
    """Unique key of the person with this OIDC subject, across tenants."""
    return global_unique_key(RecordType.PERSON, "oidc", subject)


def by_oidc_subject_index(id: str) -> str:
    """Index key under which a person with a linked OIDC subject is listed."""
    return f"oidc:{id}"


def _require_person_for_sign_in(
    actor: Actor, current: PersonRecord | None, person: PersonRecord
) -> None:
    """Check who may act as whom, as an invitation does. Raises Forbidden.

    A sign-in of an issuer finds a person by e-mail address, and an admin may accept.
    """
    if person.role in ADMIN_ROLES and (current is None or current.role != person.role):
        actor.require_person_admin("make a person an admin")
    if current is not None and current.email != person.email:
        actor.require_person_admin("change another person's e-mail address")


async def _require_owner(
    ports: Ports, actor: Actor, roles: Collection[Role]
) -> list[CollectionRevision]:
    """Return the revisions a change of owners expects. Raises Forbidden.

    Reads the caller again: a concurrent request may have demoted them.
    """
    if Role.OWNER not in roles:
        return []
    people_revision = await load_collection_revision(ports, actor.tenant, RecordType.PERSON)
    [caller] = await ports.records.get(actor.tenant, RecordType.PERSON, [actor.person or ""])
    is_owner = caller is not None and person_from_record(caller).role is Role.OWNER
    if actor.role is not Role.OWNER or not is_owner:
        raise Forbidden("only an owner may add, change or remove an owner")
    return [people_revision]


async def _require_another_owner(
    ports: Ports, person: Record, expected_revisions: Sequence[CollectionRevision]
) -> None:
    """Raise Conflict for the last owner, or Busy if people changed since read."""
    owners = await ports.records.list(
        person.tenant, RecordType.PERSON, index_key=OWNERS_INDEX, limit=2
    )
    if [owner.id for owner in owners] == [person.id]:
        if [
            await load_collection_revision(ports, revision.tenant, revision.type)
            for revision in expected_revisions
        ] != list(expected_revisions):
            raise Busy("people changed concurrently")
        raise Conflict("a tenant must keep at least one owner")


def _email_unique_key(tenant: str, address: str) -> str:
    return unique_key(tenant, RecordType.PERSON, "email", email_key(address))


@cache
def _timezone_names() -> frozenset[str]:
    return frozenset(available_timezones() - _EXCLUDED_TIMEZONES)
