"""REST endpoints for templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import overview, templates
from carrel.core.access import Permission
from carrel.core.agents.template import template_from_record
from carrel.core.errors import Busy, Conflict, NotFound
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Line, PageQuery, Slug, set_fields
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Templates"


class CreateTemplateBody(RequestModel, frozen=True):
    slug: Slug
    name: Line


class UpdateTemplateBody(RequestModel, frozen=True):
    slug: Slug | UnsetType = UNSET
    name: Line | UnsetType = UNSET


class TemplateModel(ResponseModel, frozen=True):
    id: str
    slug: str
    name: str
    agent_count: Annotated[int, Meta(ge=0)]
    """Number of agents created from it."""
    created_at: Rfc3339
    updated_at: Rfc3339


class TemplatePageModel(ResponseModel, frozen=True):
    items: list[TemplateModel]
    next: str | None


async def _load_model(request: Request[Any, Any], record: Record) -> TemplateModel:
    [model] = await _load_models(request, [record])
    return model


async def _load_models(
    request: Request[Any, Any], records: Sequence[Record]
) -> list[TemplateModel]:
    ids = [record.id for record in records]
    counts = await overview.count_followers(request.ports, request.actor.tenant, ids)
    return [template_to_model(record, count) for record, count in zip(records, counts, strict=True)]


def template_to_model(record: Record, agents: int) -> TemplateModel:
    template = template_from_record(record)
    return TemplateModel(
        id=record.id,
        slug=template.slug,
        name=template.name,
        agent_count=agents,
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "GET",
    "/v1/templates",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    responses={200: TemplatePageModel},
    tag=_TAG,
)
async def list_templates(request: Request[None, PageQuery]) -> Response:
    """List templates."""
    query = request.query
    page = await templates.list_templates(
        request.ports, request.actor, cursor=query.cursor, limit=query.limit
    )
    items = await _load_models(request, page.items)
    return Response.json(TemplatePageModel(items=items, next=page.next))


async def _rebuild_create(
    request: Request[CreateTemplateBody], versions: tuple[int, ...]
) -> Response:
    record = await templates.get(request.ports, request.actor, request.body.slug)
    return Response.json(await _load_model(request, record), 201)


@endpoint(
    "POST",
    "/v1/templates",
    permission=Permission.TENANT_ADMIN,
    body=CreateTemplateBody,
    responses={201: TemplateModel},
    refusals=(NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_create,
)
async def create(request: Request[CreateTemplateBody]) -> Response:
    """Create a template."""
    body = request.body
    record = await templates.create(
        request.ports, request.actor, body.slug, body.name, request.idempotency_key
    )
    return Response.json(await _load_model(request, record), 201)


@endpoint(
    "GET",
    "/v1/templates/{id}",
    permission=Permission.TENANT_READ,
    responses={200: TemplateModel},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get a template by id or slug."""
    record = await templates.get(request.ports, request.actor, request.params["id"])
    return Response.json(await _load_model(request, record))


async def _rebuild_update(
    request: Request[UpdateTemplateBody], versions: tuple[int, ...]
) -> Response:
    name = request.body.slug or request.params["id"]
    return Response.json(
        await _load_model(request, await templates.get(request.ports, request.actor, name))
    )


@endpoint(
    "PATCH",
    "/v1/templates/{id}",
    permission=Permission.TENANT_ADMIN,
    body=UpdateTemplateBody,
    responses={200: TemplateModel},
    refusals=(NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_update,
)
async def patch(request: Request[UpdateTemplateBody]) -> Response:
    """Change a template's slug or name. Its files and agents are kept."""
    name, fields = request.params["id"], set_fields(request.body)
    record = await templates.patch(
        request.ports, request.actor, name, fields, request.idempotency_key
    )
    return Response.json(await _load_model(request, record))


async def _rebuild_delete(request: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/templates/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_delete,
)
async def delete(request: Request) -> Response:
    """Delete a template that no agent uses."""
    await templates.delete(
        request.ports, request.actor, request.params["id"], request.idempotency_key
    )
    return Response.empty(204)


ENDPOINTS: Final = (list_templates, create, get, patch, delete)
