"""People over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.accounts import people
from carrel.actions.accounts.people import Profile
from carrel.core.access import Permission, Role
from carrel.core.errors import Busy, Forbidden, Missing, Taken, TooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Call, Received, Sent, endpoint
from carrel.server.http.query_fields import Email, Line, PageQuery, given
from carrel.server.http.response import Answer
from carrel.server.rest.files.file_models import When, moment

_TAG: Final = "People"
Zone = Annotated[str, Meta(min_length=1, max_length=64, description="An IANA zone: Europe/Paris.")]


class NewPerson(Received, frozen=True):
    name: Line
    email: Email
    role: Role
    title: Line | None = None
    timezone: Zone | None = None
    pronouns: Line | None = None


class PersonPatch(Received, frozen=True):
    """What is named changes; null clears a field that may be absent."""

    name: Line | msgspec.UnsetType = msgspec.UNSET
    email: Email | msgspec.UnsetType = msgspec.UNSET
    role: Role | msgspec.UnsetType = msgspec.UNSET
    title: Line | msgspec.UnsetType | None = msgspec.UNSET
    timezone: Zone | msgspec.UnsetType | None = msgspec.UNSET
    pronouns: Line | msgspec.UnsetType | None = msgspec.UNSET


class Person(Sent, frozen=True):
    id: str
    name: str
    email: str
    role: Role
    title: str | None
    timezone: str | None
    pronouns: str | None
    created_at: When
    updated_at: When


class People(Sent, frozen=True):
    items: list[Person]
    next: str | None


def person_of(record: Record) -> Person:
    body = record.body
    return Person(
        id=record.id,
        name=body["name"],
        email=body["email"],
        role=Role(body["role"]),
        title=body["title"],
        timezone=body["timezone"],
        pronouns=body["pronouns"],
        created_at=moment(record.created),
        updated_at=moment(record.changed),
    )


@endpoint(
    "GET",
    "/v1/people",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    answers={200: People},
    tag=_TAG,
)
async def listing(call: Call[None, PageQuery]) -> Answer:
    """List the people of the tenant."""
    query = call.query
    found = await people.listing(call.world, call.actor, cursor=query.cursor, limit=query.limit)
    return Answer.json(People(items=[person_of(one) for one in found.items], next=found.next))


async def _created(call: Call[NewPerson], versions: tuple[int, ...]) -> Answer:
    return Answer.json(person_of(await people.named(call.world, call.actor, call.body.email)), 201)


@endpoint(
    "POST",
    "/v1/people",
    permission=Permission.TENANT_ADMIN,
    body=NewPerson,
    answers={201: Person},
    refuses=(Forbidden, Missing, Taken, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_created,
)
async def create(call: Call[NewPerson]) -> Answer:
    """Add a person. Only an owner adds owners."""
    profile = Profile(**msgspec.structs.asdict(call.body))
    made = await people.create(call.world, call.actor, profile, call.receipt)
    return Answer.json(person_of(made), 201)


@endpoint(
    "GET",
    "/v1/people/{id}",
    permission=Permission.TENANT_READ,
    answers={200: Person},
    refuses=(Missing,),
    tag=_TAG,
)
async def get(call: Call) -> Answer:
    """Look at one person."""
    return Answer.json(person_of(await people.get(call.world, call.actor, call.params["id"])))


async def _patched(call: Call[PersonPatch], versions: tuple[int, ...]) -> Answer:
    return Answer.json(person_of(await people.get(call.world, call.actor, call.params["id"])))


@endpoint(
    "PATCH",
    "/v1/people/{id}",
    permission=Permission.TENANT_ADMIN,
    body=PersonPatch,
    answers={200: Person},
    refuses=(Forbidden, Missing, Taken, TooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_patched,
)
async def patch(call: Call[PersonPatch]) -> Answer:
    """Change a person. Only an owner changes owners, and the last one stays one."""
    id, fields = call.params["id"], given(call.body)
    changed = await people.patch(call.world, call.actor, id, fields, call.receipt)
    return Answer.json(person_of(changed))


async def _deleted(call: Call, versions: tuple[int, ...]) -> Answer:
    return Answer.empty(204)


@endpoint(
    "DELETE",
    "/v1/people/{id}",
    permission=Permission.TENANT_ADMIN,
    answers={204: None},
    refuses=(Forbidden, Missing, Taken, TooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_deleted,
)
async def delete(call: Call) -> Answer:
    """Remove a person and all their keys. The last owner stays."""
    await people.delete(call.world, call.actor, call.params["id"], call.receipt)
    return Answer.empty(204)


ENDPOINTS: Final = (listing, create, get, patch, delete)
