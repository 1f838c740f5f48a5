"""REST endpoints for templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import overview, templates
from carrel.core.agents.template import template_from_record
from carrel.core.errors import Busy, Conflict, NotFound
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel
from carrel.server.http.query_fields import Line, PageQuery, Search, Slug, Total
from carrel.server.rest.collections import RecordCollection
from carrel.server.rest.files.file_models import Rfc3339, rfc3339


class TemplateQuery(PageQuery, frozen=True):
    """Filters of the list of templates."""

    q: Search = ""


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
    total: Total


async def load_template_models(
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


async def _create(request: Request[CreateTemplateBody]) -> Record:
    body = request.body
    return await templates.create(
        request.ports, request.actor, body.slug, body.name, request.idempotency_key
    )


async def _get_created(request: Request[CreateTemplateBody]) -> Record:
    return await templates.get(request.ports, request.actor, request.body.slug)


_TEMPLATES: Final = RecordCollection(
    "templates", "/v1/templates", "Templates", TemplateModel, load_template_models, templates.get
)
ENDPOINTS: Final = (
    _TEMPLATES.list(
        "List templates by id.", templates.list_templates, TemplatePageModel, query=TemplateQuery
    ),
    _TEMPLATES.create(
        "Create a template.",
        CreateTemplateBody,
        _create,
        _get_created,
        (NotFound, Conflict, Busy),
    ),
    _TEMPLATES.get("Get a template by id or slug."),
    _TEMPLATES.patch(
        "Change a template's slug or name. Its files and agents are kept.",
        UpdateTemplateBody,
        templates.patch,
        (NotFound, Conflict, Busy),
    ),
    _TEMPLATES.delete(
        "Delete a template that no agent uses.", templates.delete, (NotFound, Conflict, Busy)
    ),
)
