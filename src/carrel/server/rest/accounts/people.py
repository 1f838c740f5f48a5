"""REST endpoints for people."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.accounts import people
from carrel.core.access import Role
from carrel.core.accounts import PersonRecord, person_from_record
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel
from carrel.server.http.query_fields import Email, Line, PageQuery, Search, Total
from carrel.server.rest.collections import RecordCollection, each_record
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

TimeZone = Annotated[
    str, Meta(min_length=1, max_length=64, description="IANA time zone, for example Europe/Paris.")
]


class PersonQuery(PageQuery, frozen=True):
    """Filters of the list of people."""

    q: Search = ""
    role: Role | None = None


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
    total: Total


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


async def _create(request: Request[CreatePersonBody]) -> Record:
    person = PersonRecord(**msgspec.structs.asdict(request.body))
    return await people.create(request.ports, request.actor, person, request.idempotency_key)


async def _get_created(request: Request[CreatePersonBody]) -> Record:
    return await people.get_by_email(request.ports, request.actor, request.body.email)


_PEOPLE: Final = RecordCollection(
    "people", "/v1/people", "People", PersonModel, each_record(person_to_model), people.get
)
ENDPOINTS: Final = (
    _PEOPLE.list(
        "List the people of the tenant.", people.list_people, PersonPageModel, query=PersonQuery
    ),
    _PEOPLE.create(
        "Create a person. Only an owner can create owners.",
        CreatePersonBody,
        _create,
        _get_created,
        (Forbidden, NotFound, Conflict, Busy),
    ),
    _PEOPLE.get("Get a person."),
    _PEOPLE.patch(
        "Update a person. Only an owner can change owners; the last owner stays one.",
        UpdatePersonBody,
        people.patch,
        (Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    ),
    _PEOPLE.delete(
        "Delete a person and their keys. The last owner cannot be deleted.",
        people.delete,
        (Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    ),
)
