"""REST endpoints for people."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.accounts import people
from carrel.core.access import Permission, Role
from carrel.core.accounts import PersonRecord, person_from_record
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Email, Line, PageQuery, set_fields
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "People"
TimeZone = Annotated[
    str, Meta(min_length=1, max_length=64, description="IANA time zone, for example Europe/Paris.")
]


class CreatePersonBody(RequestModel, frozen=True):
    name: Line
    email: Email
    role: Role
    title: Line | None = None
    timezone: TimeZone | None = None
    pronouns: Line | None = None


class UpdatePersonBody(RequestModel, frozen=True):
    """Only fields that are sent change; null clears an optional field."""

    name: Line | msgspec.UnsetType = msgspec.UNSET
    email: Email | msgspec.UnsetType = msgspec.UNSET
    role: Role | msgspec.UnsetType = msgspec.UNSET
    title: Line | msgspec.UnsetType | None = msgspec.UNSET
    timezone: TimeZone | msgspec.UnsetType | None = msgspec.UNSET
    pronouns: Line | msgspec.UnsetType | None = msgspec.UNSET


class PersonModel(ResponseModel, frozen=True):
    id: str
    name: str
    email: str
    role: Role
    title: str | None
    timezone: str | None
    pronouns: str | None
    created_at: Rfc3339
    updated_at: Rfc3339


class PersonPageModel(ResponseModel, frozen=True):
    items: list[PersonModel]
    next: str | None


def person_to_model(record: Record) -> PersonModel:
    person = person_from_record(record)
    return PersonModel(
        id=record.id,
        name=person.name,
        email=person.email,
        role=person.role,
        title=person.title,
        timezone=person.timezone,
        pronouns=person.pronouns,
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "GET",
    "/v1/people",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    responses={200: PersonPageModel},
    tag=_TAG,
)
async def list_people(request: Request[None, PageQuery]) -> Response:
    """List the people of the tenant."""
    query = request.query
    page = await people.list_people(
        request.ports, request.actor, cursor=query.cursor, limit=query.limit
    )
    return Response.json(
        PersonPageModel(items=[person_to_model(record) for record in page.items], next=page.next)
    )


async def _rebuild_create(
    request: Request[CreatePersonBody], versions: tuple[int, ...]
) -> Response:
    return Response.json(
        person_to_model(
            await people.get_by_email(request.ports, request.actor, request.body.email)
        ),
        201,
    )


@endpoint(
    "POST",
    "/v1/people",
    permission=Permission.TENANT_ADMIN,
    body=CreatePersonBody,
    responses={201: PersonModel},
    refusals=(Forbidden, NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_create,
)
async def create(request: Request[CreatePersonBody]) -> Response:
    """Create a person. Only an owner can create owners."""
    new_person = PersonRecord(**msgspec.structs.asdict(request.body))
    person = await people.create(request.ports, request.actor, new_person, request.idempotency_key)
    return Response.json(person_to_model(person), 201)


@endpoint(
    "GET",
    "/v1/people/{id}",
    permission=Permission.TENANT_READ,
    responses={200: PersonModel},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get a person."""
    return Response.json(
        person_to_model(await people.get(request.ports, request.actor, request.params["id"]))
    )


async def _rebuild_update(
    request: Request[UpdatePersonBody], versions: tuple[int, ...]
) -> Response:
    return Response.json(
        person_to_model(await people.get(request.ports, request.actor, request.params["id"]))
    )


@endpoint(
    "PATCH",
    "/v1/people/{id}",
    permission=Permission.TENANT_ADMIN,
    body=UpdatePersonBody,
    responses={200: PersonModel},
    refusals=(Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_update,
)
async def patch(request: Request[UpdatePersonBody]) -> Response:
    """Update a person. Only an owner can change owners; the last owner stays one."""
    id, fields = request.params["id"], set_fields(request.body)
    person = await people.patch(request.ports, request.actor, id, fields, request.idempotency_key)
    return Response.json(person_to_model(person))


async def _rebuild_delete(request: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/people/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_delete,
)
async def delete(request: Request) -> Response:
    """Delete a person and their keys. The last owner cannot be deleted."""
    await people.delete(request.ports, request.actor, request.params["id"], request.idempotency_key)
    return Response.empty(204)


ENDPOINTS: Final = (list_people, create, get, patch, delete)
