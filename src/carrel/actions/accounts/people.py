"""The people of a tenant: there is always an owner among them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from zoneinfo import available_timezones

from carrel.actions.overlay.pairing import person_changed, person_left
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    Page,
    collection_revision,
    collection_revisions,
    commit_changes,
    find,
    iter_records,
    page,
    record_after,
    retry_while_busy,
)
from carrel.core.access import Actor, Role
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, ValidationError
from carrel.core.store.record import (
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
    global_unique_key,
    unique_key,
)
from carrel.core.store.tree import IdempotencyKey
from carrel.core.text_validation import email, email_key, single_line
from carrel.ports import Ports

OWNERS: Final = f"role:{Role.OWNER}"
"""The link under which a tenant's owners are listed."""

SUBJECT: Final = "subject"
"""The field that says by which issuer and subject a person signs in, once one has."""

_HOLDINGS: Final = (RecordType.KEY, RecordType.CODE)
"""What a person holds, and takes along on leaving."""

_UNREAL: Final = {"Factory", "localtime"}


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    email: str
    role: Role
    title: str | None = None
    timezone: str | None = None
    pronouns: str | None = None


FIELDS: Final = tuple(Profile.__dataclass_fields__)


def of_person(id: str) -> str:
    """The link under which what a person holds is listed."""
    return f"person:{id}"


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await find(ports, actor.tenant, RecordType.PERSON, id)


async def listing(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await page(ports, actor.tenant, RecordType.PERSON, cursor=cursor, limit=limit)


async def named(ports: Ports, actor: Actor, address: str) -> Record:
    """The person with an e-mail address. Raises Missing."""
    [found] = await ports.records.get_by_unique_key([_handle(actor.tenant, address)])
    if found is None:
        raise NotFound("there is no person of that address")
    return found


async def create(
    ports: Ports, actor: Actor, profile: Profile, receipt: IdempotencyKey | None = None
) -> Record:
    """Raises Taken where another has the address, Forbidden for an owner not made by one."""
    body = await body_of(profile)
    change = change_of(actor.tenant, ports.clock.new_id("per"), 0, body)

    async def attempt() -> Record:
        rests = await _on_owners(ports, actor, {profile.role})
        at = await commit_changes(
            ports, actor.name, "add a person", [change], collection_revisions=rests, receipt=receipt
        )
        return record_after(change, at)

    return await retry_while_busy(attempt)


async def patch(
    ports: Ports,
    actor: Actor,
    id: str,
    given: Mapping[str, Any],
    receipt: IdempotencyKey | None = None,
) -> Record:
    """Change the fields that are given; None clears one that may be absent.

    Raises Taken where another has the address or the last owner would be none any more.
    """

    async def attempt() -> Record:
        was = await get(ports, actor, id)
        profile = Profile(**{**_known(was), **given})
        body = {**_sign_in(was.body), **await body_of(profile)}
        if body == was.body:
            return was
        rests = await _on_owners(ports, actor, {was.body["role"], body["role"]})
        if body["role"] != Role.OWNER:
            await _spare_the_last_owner(ports, was, rests)
        change = change_of(was.tenant, id, was.revision, body)
        rests.append(await collection_revision(ports, actor.tenant, RecordType.AGENT))
        rules = await load_rules(ports, actor.tenant)
        drafts = await person_changed(ports, rules, record_after(change, 0, was))
        at = await commit_changes(
            ports,
            actor.name,
            "change a person",
            [change],
            collection_revisions=[*rests, *rules.shelves],
            receipt=receipt,
            drafts=drafts,
        )
        return record_after(change, at, was)

    return await retry_while_busy(attempt)


async def delete(
    ports: Ports, actor: Actor, id: str, receipt: IdempotencyKey | None = None
) -> None:
    """Remove a person and every key they hold. Raises Taken for the last owner."""

    async def attempt() -> None:
        rests = await collection_revisions(ports, actor.tenant, _HOLDINGS)
        was = await get(ports, actor, id)
        rests += await _on_owners(ports, actor, {was.body["role"]})
        await _spare_the_last_owner(ports, was, rests)
        gone = [was]
        for record_type in _HOLDINGS:
            gone += [
                held async for held in iter_records(ports, was.tenant, record_type, of_person(id))
            ]
        changes = [RecordChange(one.tenant, one.type, one.id, None, one.revision) for one in gone]
        rests.append(await collection_revision(ports, actor.tenant, RecordType.AGENT))
        rules = await load_rules(ports, actor.tenant)
        unpaired, drafts = await person_left(ports, rules, was)
        await commit_changes(
            ports,
            actor.name,
            "remove a person",
            [*changes, *unpaired],
            collection_revisions=[*rests, *rules.shelves],
            receipt=receipt,
            drafts=drafts,
        )

    await retry_while_busy(attempt)


async def body_of(profile: Profile) -> dict[str, Any]:
    """A profile as it is stored, every part of it checked. Raises Malformed."""
    zone = profile.timezone
    if zone is not None and zone not in await asyncio.to_thread(_zones):
        raise ValidationError("timezone must be an IANA zone such as Europe/Paris")
    return {
        "name": single_line(profile.name, "name"),
        "email": email(profile.email),
        "role": Role(profile.role).value,
        "title": None if profile.title is None else single_line(profile.title, "title"),
        "timezone": zone,
        "pronouns": None if profile.pronouns is None else single_line(profile.pronouns, "pronouns"),
    }


def change_of(tenant: str, id: str, expected: int, body: Mapping[str, Any]) -> RecordChange:
    index_keys = [OWNERS] if body["role"] == Role.OWNER else []
    unique_keys = [_handle(tenant, body["email"])]
    if subject := body.get(SUBJECT):
        unique_keys.append(subject_handle(subject))
        index_keys.append(linked(id))
    return RecordChange(
        tenant,
        RecordType.PERSON,
        id,
        body,
        expected,
        unique_keys=tuple(unique_keys),
        index_keys=tuple(index_keys),
    )


def subject_handle(subject: str) -> str:
    """By which the one person of a sign-in is found, whatever the tenant."""
    return global_unique_key(RecordType.PERSON, "oidc", subject)


def linked(id: str) -> str:
    """The link under which a person is listed whom a sign-in names."""
    return f"oidc:{id}"


def _sign_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a person keeps that is no part of a profile: a change of that must not sign them out."""
    return {SUBJECT: body[SUBJECT]} if SUBJECT in body else {}


async def _on_owners(
    ports: Ports, actor: Actor, roles: Collection[str]
) -> list[CollectionRevision]:
    """What a change of owners rests on: that the caller still is one, and who the others are.

    The caller is looked up anew, since a rival may have demoted them after the request came in.
    """
    if Role.OWNER not in roles:
        return []
    seen = await collection_revision(ports, actor.tenant, RecordType.PERSON)
    [caller] = await ports.records.get(actor.tenant, RecordType.PERSON, [actor.person or ""])
    if actor.role is not Role.OWNER or caller is None or caller.body["role"] != Role.OWNER:
        raise Forbidden("only an owner may make, change or remove an owner")
    return [seen]


async def _spare_the_last_owner(
    ports: Ports, person: Record, rests: Sequence[CollectionRevision]
) -> None:
    """Raises Busy where the caller, whom they were asked with, may have ceased to be one since."""
    owners = await ports.records.list(person.tenant, RecordType.PERSON, link=OWNERS, limit=2)
    if [owner.id for owner in owners] == [person.id]:
        if [await collection_revision(ports, seen.tenant, seen.type) for seen in rests] != list(
            rests
        ):
            raise Busy("people were being changed at the same time")
        raise Conflict("this is the last owner, and a tenant always has one")


def _handle(tenant: str, address: str) -> str:
    return unique_key(tenant, RecordType.PERSON, "email", email_key(address))


def _known(person: Record) -> dict[str, Any]:
    return {name: person.body.get(name) for name in FIELDS}


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones() - _UNREAL)
