"""REST endpoints for agents."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import agents
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel
from carrel.server.http.query_fields import Id, Line, Slug
from carrel.server.rest.collections import RecordCollection, each_record
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

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
    )
    return await agents.create(request.ports, request.actor, new_agent, request.idempotency_key)


async def _get_created(request: Request[CreateAgentBody]) -> Record:
    return await agents.get(request.ports, request.actor, request.body.slug)


_AGENTS: Final = RecordCollection(
    "agents", "/v1/agents", "Agents", AgentModel, each_record(agent_to_model), agents.get
)
ENDPOINTS: Final = (
    _AGENTS.list("List agents.", agents.list_agents, AgentPageModel),
    _AGENTS.create(
        "Create an agent, optionally from a template.",
        CreateAgentBody,
        _create,
        _get_created,
        (NotFound, Conflict, WorkspaceTooLarge, Busy),
    ),
    _AGENTS.get("Get an agent by id or slug."),
    _AGENTS.patch(
        """Update an agent: slug, name, template, paired person, owner or config.

        IDENTITY.md and USER.md are updated in the same commit.
        """,
        UpdateAgentBody,
        agents.patch,
        (ValidationError, NotFound, Conflict, WorkspaceTooLarge, Busy),
    ),
    _AGENTS.delete("Delete an agent and its keys.", agents.delete, (NotFound, Busy)),
)
