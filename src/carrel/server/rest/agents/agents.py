"""REST endpoints for agents."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import agents, overview
from carrel.core.access import Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.tags import MAX_TAGS, TAG_PATTERN
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, Response, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, Line, PageQuery, Search, Slug, Total
from carrel.server.rest.collections import RecordCollection, each_record
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

TemplateRef = Annotated[Id, Meta(description="Id or slug.")]
Config = Annotated[dict[str, Any], Meta(max_length=64)]
Tag = Annotated[str, Meta(pattern=TAG_PATTERN)]
Tags = Annotated[
    tuple[Tag, ...],
    Meta(max_length=MAX_TAGS, description="Words that group agents; sorted, each once."),
]


class AgentQuery(PageQuery, frozen=True):
    """Filters of the list of agents."""

    q: Search = ""
    tag: Annotated[Tag, Meta(description="Only agents with this tag.")] | None = None
    template: (
        Annotated[Id, Meta(description="Template, by id or slug; `none`: without one.")] | None
    ) = None
    human: Annotated[Id, Meta(description="Only agents that work for this person.")] | None = None
    owner: Annotated[Id, Meta(description="Only agents that this person owns.")] | None = None


class CreateAgentBody(RequestModel, frozen=True):
    slug: Slug
    name: Line
    template_id: TemplateRef | None = None
    human_pair_id: Annotated[Id, Meta(description="The person the agent works for.")] | None = None
    is_shared: bool = False
    owner_id: Id | None = None
    config: Config = msgspec.field(default_factory=dict)
    tags: Tags = ()


class UpdateAgentBody(RequestModel, frozen=True):
    slug: Slug | UnsetType = UNSET
    name: Line | UnsetType = UNSET
    template_id: TemplateRef | UnsetType | None = UNSET
    human_pair_id: Id | UnsetType | None = UNSET
    is_shared: bool | UnsetType = UNSET
    owner_id: Id | UnsetType | None = UNSET
    config: Config | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET


class AgentModel(ResponseModel, frozen=True):
    id: str
    slug: str
    name: str
    template_id: str | None
    human_pair_id: str | None
    is_shared: bool
    owner_id: str | None
    config: dict[str, Any]
    tags: list[str]
    created_at: Rfc3339
    updated_at: Rfc3339


class AgentPageModel(ResponseModel, frozen=True):
    items: list[AgentModel]
    next: str | None
    total: Total


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
        tags=list(agent.tags),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


async def _create(request: Request[CreateAgentBody]) -> Record:
    body = request.body
    new_agent = agents.NewAgent(
        slug=body.slug,
        name=body.name,
        template=body.template_id,
        human=body.human_pair_id,
        is_shared=body.is_shared,
        owner=body.owner_id,
        config=body.config,
        tags=body.tags,
    )
    return await agents.create(request.ports, request.actor, new_agent, request.idempotency_key)


async def _get_created(request: Request[CreateAgentBody]) -> Record:
    return await agents.get(request.ports, request.actor, request.body.slug)


class TagCountModel(ResponseModel, frozen=True):
    tag: str
    agents: Annotated[int, Meta(ge=1)]
    """Number of agents with the tag."""


class TagListModel(ResponseModel, frozen=True):
    items: list[TagCountModel]


@endpoint(
    "GET",
    "/v1/tags",
    permission=Permission.TENANT_READ,
    responses={200: TagListModel},
    tag="Agents",
)
async def list_tags(request: Request[None]) -> Response:
    """List the tags of agents, with the number of agents of each."""
    counts = await overview.count_tags(request.ports, request.actor)
    items = [TagCountModel(tag=tag, agents=count) for tag, count in counts.items()]
    return Response.json(TagListModel(items=items))


_AGENTS: Final = RecordCollection(
    "agents", "/v1/agents", "Agents", AgentModel, each_record(agent_to_model), agents.get
)
ENDPOINTS: Final = (
    list_tags,
    _AGENTS.list(
        "List agents by id.", overview.list_agents, AgentPageModel, (NotFound,), query=AgentQuery
    ),
    _AGENTS.create(
        "Create an agent, optionally from a template.",
        CreateAgentBody,
        _create,
        _get_created,
        (NotFound, Conflict, WorkspaceTooLarge, Busy),
    ),
    _AGENTS.get("Get an agent by id or slug."),
    _AGENTS.patch(
        """Update an agent: slug, name, template, paired person, owner, tags or config.

        IDENTITY.md and USER.md are updated in the same commit.
        """,
        UpdateAgentBody,
        agents.patch,
        (ValidationError, NotFound, Conflict, WorkspaceTooLarge, Busy),
    ),
    _AGENTS.delete("Delete an agent and its keys.", agents.delete, (NotFound, Busy)),
)
