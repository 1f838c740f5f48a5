"""Templates over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import overview, templates
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, NotFound
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Line, PageQuery, Slug, set_fields
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Templates"


class NewTemplate(RequestModel, frozen=True):
    slug: Slug
    name: Line


class TemplatePatch(RequestModel, frozen=True):
    slug: Slug | UnsetType = UNSET
    name: Line | UnsetType = UNSET


class Template(ResponseModel, frozen=True):
    id: str
    slug: str
    name: str
    agent_count: Annotated[int, Meta(ge=0)]
    """How many agents follow it."""
    created_at: When
    updated_at: When


class Templates(ResponseModel, frozen=True):
    items: list[Template]
    next: str | None


async def _shown(call: Request[Any, Any], record: Record) -> Template:
    [shown] = await _all_shown(call, [record])
    return shown


async def _all_shown(call: Request[Any, Any], records: Sequence[Record]) -> list[Template]:
    ids = [record.id for record in records]
    counts = await overview.followers(call.ports, call.actor.tenant, ids)
    return [_template(record, many) for record, many in zip(records, counts, strict=True)]


def _template(record: Record, agents: int) -> Template:
    return Template(
        id=record.id,
        slug=record.body["slug"],
        name=record.body["name"],
        agent_count=agents,
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "GET",
    "/v1/templates",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    responses={200: Templates},
    tag=_TAG,
)
async def listing(call: Request[None, PageQuery]) -> Response:
    """List the templates."""
    query = call.query
    found = await templates.listing(call.ports, call.actor, cursor=query.cursor, limit=query.limit)
    items = await _all_shown(call, found.items)
    return Response.json(Templates(items=items, next=found.next))


async def _created(call: Request[NewTemplate], versions: tuple[int, ...]) -> Response:
    made = await templates.get(call.ports, call.actor, call.body.slug)
    return Response.json(await _shown(call, made), 201)


@endpoint(
    "POST",
    "/v1/templates",
    permission=Permission.TENANT_ADMIN,
    body=NewTemplate,
    responses={201: Template},
    refusals=(NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_created,
)
async def create(call: Request[NewTemplate]) -> Response:
    """Create a template."""
    body = call.body
    made = await templates.create(call.ports, call.actor, body.slug, body.name, call.receipt)
    return Response.json(await _shown(call, made), 201)


@endpoint(
    "GET",
    "/v1/templates/{id}",
    permission=Permission.TENANT_READ,
    responses={200: Template},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Look at a template, by id or slug."""
    found = await templates.get(call.ports, call.actor, call.params["id"])
    return Response.json(await _shown(call, found))


async def _patched(call: Request[TemplatePatch], versions: tuple[int, ...]) -> Response:
    name = call.body.slug or call.params["id"]
    return Response.json(await _shown(call, await templates.get(call.ports, call.actor, name)))


@endpoint(
    "PATCH",
    "/v1/templates/{id}",
    permission=Permission.TENANT_ADMIN,
    body=TemplatePatch,
    responses={200: Template},
    refusals=(NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_patched,
)
async def patch(call: Request[TemplatePatch]) -> Response:
    """Give a template another slug or name. Its files and its agents stay."""
    name, fields = call.params["id"], set_fields(call.body)
    changed = await templates.patch(call.ports, call.actor, name, fields, call.receipt)
    return Response.json(await _shown(call, changed))


async def _deleted(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/templates/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_deleted,
)
async def delete(call: Request) -> Response:
    """Delete a template that no agent follows."""
    await templates.delete(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.empty(204)


ENDPOINTS: Final = (listing, create, get, patch, delete)
