"""REST endpoints for agents."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import agents
from carrel.core.access import Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, Line, PageQuery, Slug, set_fields
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Agents"
TemplateRef = Annotated[Id, Meta(description="Id or slug.")]
Config = Annotated[dict[str, Any], Meta(max_length=64)]


class CreateAgentBody(RequestModel, frozen=True):
    slug: Slug
    name: Line
    template_id: TemplateRef | None = None
    human_pair_id: Annotated[Id, Meta(description="The person the agent works for.")] | None = None
    is_shared: bool = False
    owner_id: Id | None = None
    config: Config = msgspec.field(default_factory=dict)


class UpdateAgentBody(RequestModel, frozen=True):
    slug: Slug | UnsetType = UNSET
    name: Line | UnsetType = UNSET
    template_id: TemplateRef | UnsetType | None = UNSET
    human_pair_id: Id | UnsetType | None = UNSET
    is_shared: bool | UnsetType = UNSET
    owner_id: Id | UnsetType | None = UNSET
    config: Config | UnsetType = UNSET


class AgentModel(ResponseModel, frozen=True):
    id: str
    slug: str
    name: str
    template_id: str | None
    human_pair_id: str | None
    is_shared: bool
    owner_id: str | None
    config: dict[str, Any]
    created_at: Rfc3339
    updated_at: Rfc3339


class AgentPageModel(ResponseModel, frozen=True):
    items: list[AgentModel]
    next: str | None


def agent_to_model(record: Record) -> AgentModel:
    agent = agent_from_record(record)
    return AgentModel(
        id=record.id,
        slug=agent.slug,
        name=agent.name,
        template_id=agent.template_id,
        human_pair_id=agent.human_pair_id,
        is_shared=agent.is_shared,
        owner_id=agent.owner_id,
        config=dict(agent.config),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "GET",
    "/v1/agents",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    responses={200: AgentPageModel},
    tag=_TAG,
)
async def list_agents(request: Request[None, PageQuery]) -> Response:
    """List agents."""
    query = request.query
    page = await agents.list_agents(
        request.ports, request.actor, cursor=query.cursor, limit=query.limit
    )
    return Response.json(
        AgentPageModel(items=[agent_to_model(record) for record in page.items], next=page.next)
    )


async def _rebuild_create(request: Request[CreateAgentBody], versions: tuple[int, ...]) -> Response:
    return Response.json(
        agent_to_model(await agents.get(request.ports, request.actor, request.body.slug)), 201
    )


@endpoint(
    "POST",
    "/v1/agents",
    permission=Permission.TENANT_ADMIN,
    body=CreateAgentBody,
    responses={201: AgentModel},
    refusals=(NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_create,
)
async def create(request: Request[CreateAgentBody]) -> Response:
    """Create an agent, optionally from a template."""
    body = request.body
    new_agent = agents.NewAgent(
        slug=body.slug,
        name=body.name,
        template=body.template_id,
        human=body.human_pair_id,
        is_shared=body.is_shared,
        owner=body.owner_id,
        config=body.config,
    )
    return Response.json(
        agent_to_model(
            await agents.create(request.ports, request.actor, new_agent, request.idempotency_key)
        ),
        201,
    )


@endpoint(
    "GET",
    "/v1/agents/{id}",
    permission=Permission.TENANT_READ,
    responses={200: AgentModel},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get an agent by id or slug."""
    return Response.json(
        agent_to_model(await agents.get(request.ports, request.actor, request.params["id"]))
    )


async def _rebuild_update(request: Request[UpdateAgentBody], versions: tuple[int, ...]) -> Response:
    name = request.body.slug or request.params["id"]
    return Response.json(agent_to_model(await agents.get(request.ports, request.actor, name)))


@endpoint(
    "PATCH",
    "/v1/agents/{id}",
    permission=Permission.TENANT_ADMIN,
    body=UpdateAgentBody,
    responses={200: AgentModel},
    refusals=(ValidationError, NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_update,
)
async def patch(request: Request[UpdateAgentBody]) -> Response:
    """Update an agent: slug, name, template, paired person, owner or config.

    IDENTITY.md and USER.md are updated in the same commit.
    """
    name, changes = request.params["id"], set_fields(request.body)
    return Response.json(
        agent_to_model(
            await agents.patch(request.ports, request.actor, name, changes, request.idempotency_key)
        )
    )


async def _rebuild_delete(request: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/agents/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_delete,
)
async def delete(request: Request) -> Response:
    """Delete an agent and its keys."""
    await agents.delete(request.ports, request.actor, request.params["id"], request.idempotency_key)
    return Response.empty(204)


ENDPOINTS: Final = (list_agents, create, get, patch, delete)
