"""Agents over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import agents
from carrel.core.access import Permission
from carrel.core.agents.agent import agent_fields
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, Line, PageQuery, Slug
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Agents"
TemplateName = Annotated[Id, Meta(description="An id or a slug.")]
Config = Annotated[dict[str, Any], Meta(max_length=64)]


class NewAgent(RequestModel, frozen=True):
    slug: Slug
    name: Line
    template_id: TemplateName | None = None
    human_pair_id: Annotated[Id, Meta(description="The person whom it works for.")] | None = None
    is_shared: bool = False
    owner_id: Id | None = None
    config: Config = msgspec.field(default_factory=dict)


class AgentPatch(RequestModel, frozen=True):
    slug: Slug | UnsetType = UNSET
    name: Line | UnsetType = UNSET
    template_id: TemplateName | UnsetType | None = UNSET
    human_pair_id: Id | UnsetType | None = UNSET
    is_shared: bool | UnsetType = UNSET
    owner_id: Id | UnsetType | None = UNSET
    config: Config | UnsetType = UNSET


class Agent(ResponseModel, frozen=True):
    id: str
    slug: str
    name: str
    template_id: str | None
    human_pair_id: str | None
    is_shared: bool
    owner_id: str | None
    config: dict[str, Any]
    created_at: When
    updated_at: When


class Agents(ResponseModel, frozen=True):
    items: list[Agent]
    next: str | None


def agent_of(record: Record) -> Agent:
    known = agent_fields(record)
    return Agent(
        id=record.id,
        slug=known["slug"],
        name=known["name"],
        template_id=known["templateId"],
        human_pair_id=known["humanPairId"],
        is_shared=known["isShared"],
        owner_id=known["ownerId"],
        config=known["config"],
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "GET",
    "/v1/agents",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    responses={200: Agents},
    tag=_TAG,
)
async def listing(call: Request[None, PageQuery]) -> Response:
    """List the agents."""
    query = call.query
    found = await agents.listing(call.ports, call.actor, cursor=query.cursor, limit=query.limit)
    return Response.json(Agents(items=[agent_of(one) for one in found.items], next=found.next))


async def _created(call: Request[NewAgent], versions: tuple[int, ...]) -> Response:
    return Response.json(agent_of(await agents.get(call.ports, call.actor, call.body.slug)), 201)


@endpoint(
    "POST",
    "/v1/agents",
    permission=Permission.TENANT_ADMIN,
    body=NewAgent,
    responses={201: Agent},
    refusals=(NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_created,
)
async def create(call: Request[NewAgent]) -> Response:
    """Create an agent, perhaps one that follows a template."""
    body = call.body
    new = agents.NewAgent(
        slug=body.slug,
        name=body.name,
        template=body.template_id,
        human=body.human_pair_id,
        is_shared=body.is_shared,
        owner=body.owner_id,
        config=body.config,
    )
    return Response.json(
        agent_of(await agents.create(call.ports, call.actor, new, call.receipt)), 201
    )


@endpoint(
    "GET",
    "/v1/agents/{id}",
    permission=Permission.TENANT_READ,
    responses={200: Agent},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Look at an agent, by id or slug."""
    return Response.json(agent_of(await agents.get(call.ports, call.actor, call.params["id"])))


async def _patched(call: Request[AgentPatch], versions: tuple[int, ...]) -> Response:
    name = call.body.slug or call.params["id"]
    return Response.json(agent_of(await agents.get(call.ports, call.actor, name)))


@endpoint(
    "PATCH",
    "/v1/agents/{id}",
    permission=Permission.TENANT_ADMIN,
    body=AgentPatch,
    responses={200: Agent},
    refusals=(ValidationError, NotFound, Conflict, WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_patched,
)
async def patch(call: Request[AgentPatch]) -> Response:
    """Rename an agent, move it to another template, pair it with a human.

    The files that follow from it, IDENTITY.md and USER.md, change with it or not at all.
    """
    names = {field.name: field.encode_name for field in msgspec.structs.fields(AgentPatch)}
    given = {
        names[name]: value
        for name, value in msgspec.structs.asdict(call.body).items()
        if value is not UNSET
    }
    name = call.params["id"]
    return Response.json(
        agent_of(await agents.patch(call.ports, call.actor, name, given, call.receipt))
    )


async def _deleted(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/agents/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_deleted,
)
async def delete(call: Request) -> Response:
    """Delete an agent and the keys that are bound to it."""
    await agents.delete(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.empty(204)


ENDPOINTS: Final = (listing, create, get, patch, delete)
