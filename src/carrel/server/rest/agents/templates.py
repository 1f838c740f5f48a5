"""Templates over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import overview as surveys
from carrel.actions.agents import templates
from carrel.core.access import Permission
from carrel.core.errors import Busy, Missing, Taken
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Call, Received, Sent, endpoint
from carrel.server.http.query_fields import Line, PageQuery, Slug, given
from carrel.server.http.response import Answer
from carrel.server.rest.files.file_models import When, moment

_TAG: Final = "Templates"


class NewTemplate(Received, frozen=True):
    slug: Slug
    name: Line


class TemplatePatch(Received, frozen=True):
    slug: Slug | UnsetType = UNSET
    name: Line | UnsetType = UNSET


class Template(Sent, frozen=True):
    id: str
    slug: str
    name: str
    agent_count: Annotated[int, Meta(ge=0)]
    """How many agents follow it."""
    created_at: When
    updated_at: When


class Templates(Sent, frozen=True):
    items: list[Template]
    next: str | None


async def _shown(call: Call[Any, Any], record: Record) -> Template:
    [shown] = await _all_shown(call, [record])
    return shown


async def _all_shown(call: Call[Any, Any], records: Sequence[Record]) -> list[Template]:
    ids = [record.id for record in records]
    counts = await surveys.followers(call.world, call.actor.tenant, ids)
    return [_template(record, many) for record, many in zip(records, counts, strict=True)]


def _template(record: Record, agents: int) -> Template:
    return Template(
        id=record.id,
        slug=record.body["slug"],
        name=record.body["name"],
        agent_count=agents,
        created_at=moment(record.created),
        updated_at=moment(record.changed),
    )


@endpoint(
    "GET",
    "/v1/templates",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    answers={200: Templates},
    tag=_TAG,
)
async def listing(call: Call[None, PageQuery]) -> Answer:
    """List the templates."""
    query = call.query
    found = await templates.listing(call.world, call.actor, cursor=query.cursor, limit=query.limit)
    items = await _all_shown(call, found.items)
    return Answer.json(Templates(items=items, next=found.next))


async def _created(call: Call[NewTemplate], versions: tuple[int, ...]) -> Answer:
    made = await templates.get(call.world, call.actor, call.body.slug)
    return Answer.json(await _shown(call, made), 201)


@endpoint(
    "POST",
    "/v1/templates",
    permission=Permission.TENANT_ADMIN,
    body=NewTemplate,
    answers={201: Template},
    refuses=(Missing, Taken, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_created,
)
async def create(call: Call[NewTemplate]) -> Answer:
    """Create a template."""
    body = call.body
    made = await templates.create(call.world, call.actor, body.slug, body.name, call.receipt)
    return Answer.json(await _shown(call, made), 201)


@endpoint(
    "GET",
    "/v1/templates/{id}",
    permission=Permission.TENANT_READ,
    answers={200: Template},
    refuses=(Missing,),
    tag=_TAG,
)
async def get(call: Call) -> Answer:
    """Look at a template, by id or slug."""
    found = await templates.get(call.world, call.actor, call.params["id"])
    return Answer.json(await _shown(call, found))


async def _patched(call: Call[TemplatePatch], versions: tuple[int, ...]) -> Answer:
    name = call.body.slug or call.params["id"]
    return Answer.json(await _shown(call, await templates.get(call.world, call.actor, name)))


@endpoint(
    "PATCH",
    "/v1/templates/{id}",
    permission=Permission.TENANT_ADMIN,
    body=TemplatePatch,
    answers={200: Template},
    refuses=(Missing, Taken, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_patched,
)
async def patch(call: Call[TemplatePatch]) -> Answer:
    """Give a template another slug or name. Its files and its agents stay."""
    name, fields = call.params["id"], given(call.body)
    changed = await templates.patch(call.world, call.actor, name, fields, call.receipt)
    return Answer.json(await _shown(call, changed))


async def _deleted(call: Call, versions: tuple[int, ...]) -> Answer:
    return Answer.empty(204)


@endpoint(
    "DELETE",
    "/v1/templates/{id}",
    permission=Permission.TENANT_ADMIN,
    answers={204: None},
    refuses=(Missing, Taken, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_deleted,
)
async def delete(call: Call) -> Answer:
    """Delete a template that no agent follows."""
    await templates.delete(call.world, call.actor, call.params["id"], call.receipt)
    return Answer.empty(204)


ENDPOINTS: Final = (listing, create, get, patch, delete)
