"""People over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.accounts import people
from carrel.actions.accounts.people import Profile
from carrel.core.access import Permission, Role
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Email, Line, PageQuery, set_fields
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "People"
Zone = Annotated[str, Meta(min_length=1, max_length=64, description="An IANA zone: Europe/Paris.")]


class NewPerson(RequestModel, frozen=True):
    name: Line
    email: Email
    role: Role
    title: Line | None = None
    timezone: Zone | None = None
    pronouns: Line | None = None


class PersonPatch(RequestModel, frozen=True):
    """What is named changes; null clears a field that may be absent."""

    name: Line | msgspec.UnsetType = msgspec.UNSET
    email: Email | msgspec.UnsetType = msgspec.UNSET
    role: Role | msgspec.UnsetType = msgspec.UNSET
    title: Line | msgspec.UnsetType | None = msgspec.UNSET
    timezone: Zone | msgspec.UnsetType | None = msgspec.UNSET
    pronouns: Line | msgspec.UnsetType | None = msgspec.UNSET


class Person(ResponseModel, frozen=True):
    id: str
    name: str
    email: str
    role: Role
    title: str | None
    timezone: str | None
    pronouns: str | None
    created_at: When
    updated_at: When


class People(ResponseModel, frozen=True):
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
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "GET",
    "/v1/people",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    responses={200: People},
    tag=_TAG,
)
async def listing(call: Request[None, PageQuery]) -> Response:
    """List the people of the tenant."""
    query = call.query
    found = await people.listing(call.ports, call.actor, cursor=query.cursor, limit=query.limit)
    return Response.json(People(items=[person_of(one) for one in found.items], next=found.next))


async def _created(call: Request[NewPerson], versions: tuple[int, ...]) -> Response:
    return Response.json(
        person_of(await people.named(call.ports, call.actor, call.body.email)), 201
    )


@endpoint(
    "POST",
    "/v1/people",
    permission=Permission.TENANT_ADMIN,
    body=NewPerson,
    responses={201: Person},
    refusals=(Forbidden, NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_created,
)
async def create(call: Request[NewPerson]) -> Response:
    """Add a person. Only an owner adds owners."""
    profile = Profile(**msgspec.structs.asdict(call.body))
    made = await people.create(call.ports, call.actor, profile, call.receipt)
    return Response.json(person_of(made), 201)


@endpoint(
    "GET",
    "/v1/people/{id}",
    permission=Permission.TENANT_READ,
    responses={200: Person},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Look at one person."""
    return Response.json(person_of(await people.get(call.ports, call.actor, call.params["id"])))


async def _patched(call: Request[PersonPatch], versions: tuple[int, ...]) -> Response:
    return Response.json(person_of(await people.get(call.ports, call.actor, call.params["id"])))


@endpoint(
    "PATCH",
    "/v1/people/{id}",
    permission=Permission.TENANT_ADMIN,
    body=PersonPatch,
    responses={200: Person},
    refusals=(Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_patched,
)
async def patch(call: Request[PersonPatch]) -> Response:
    """Change a person. Only an owner changes owners, and the last one stays one."""
    id, fields = call.params["id"], set_fields(call.body)
    changed = await people.patch(call.ports, call.actor, id, fields, call.receipt)
    return Response.json(person_of(changed))


async def _deleted(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/people/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_deleted,
)
async def delete(call: Request) -> Response:
    """Remove a person and all their keys. The last owner stays."""
    await people.delete(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.empty(204)


ENDPOINTS: Final = (listing, create, get, patch, delete)
