"""Agents over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import agents
from carrel.core.access import Permission
from carrel.core.agents.agent import facts
from carrel.core.errors import Busy, Malformed, Missing, Taken, TooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Call, Received, Sent, endpoint
from carrel.server.http.query_fields import Id, Line, PageQuery, Slug
from carrel.server.http.response import Answer
from carrel.server.rest.files.file_models import When, moment

_TAG: Final = "Agents"
TemplateName = Annotated[Id, Meta(description="An id or a slug.")]
Config = Annotated[dict[str, Any], Meta(max_length=64)]


class NewAgent(Received, frozen=True):
    slug: Slug
    name: Line
    template_id: TemplateName | None = None
    human_pair_id: Annotated[Id, Meta(description="The person whom it works for.")] | None = None
    is_shared: bool = False
    owner_id: Id | None = None
    config: Config = msgspec.field(default_factory=dict)


class AgentPatch(Received, frozen=True):
    slug: Slug | UnsetType = UNSET
    name: Line | UnsetType = UNSET
    template_id: TemplateName | UnsetType | None = UNSET
    human_pair_id: Id | UnsetType | None = UNSET
    is_shared: bool | UnsetType = UNSET
    owner_id: Id | UnsetType | None = UNSET
    config: Config | UnsetType = UNSET


class Agent(Sent, frozen=True):
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


class Agents(Sent, frozen=True):
    items: list[Agent]
    next: str | None


def agent_of(record: Record) -> Agent:
    known = facts(record)
    return Agent(
        id=record.id,
        slug=known["slug"],
        name=known["name"],
        template_id=known["templateId"],
        human_pair_id=known["humanPairId"],
        is_shared=known["isShared"],
        owner_id=known["ownerId"],
        config=known["config"],
        created_at=moment(record.created),
        updated_at=moment(record.changed),
    )


@endpoint(
    "GET",
    "/v1/agents",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    answers={200: Agents},
    tag=_TAG,
)
async def listing(call: Call[None, PageQuery]) -> Answer:
    """List the agents."""
    query = call.query
    found = await agents.listing(call.world, call.actor, cursor=query.cursor, limit=query.limit)
    return Answer.json(Agents(items=[agent_of(one) for one in found.items], next=found.next))


async def _created(call: Call[NewAgent], versions: tuple[int, ...]) -> Answer:
    return Answer.json(agent_of(await agents.get(call.world, call.actor, call.body.slug)), 201)


@endpoint(
    "POST",
    "/v1/agents",
    permission=Permission.TENANT_ADMIN,
    body=NewAgent,
    answers={201: Agent},
    refuses=(Missing, Taken, TooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_created,
)
async def create(call: Call[NewAgent]) -> Answer:
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
    return Answer.json(
        agent_of(await agents.create(call.world, call.actor, new, call.receipt)), 201
    )


@endpoint(
    "GET",
    "/v1/agents/{id}",
    permission=Permission.TENANT_READ,
    answers={200: Agent},
    refuses=(Missing,),
    tag=_TAG,
)
async def get(call: Call) -> Answer:
    """Look at an agent, by id or slug."""
    return Answer.json(agent_of(await agents.get(call.world, call.actor, call.params["id"])))


async def _patched(call: Call[AgentPatch], versions: tuple[int, ...]) -> Answer:
    name = call.body.slug or call.params["id"]
    return Answer.json(agent_of(await agents.get(call.world, call.actor, name)))


@endpoint(
    "PATCH",
    "/v1/agents/{id}",
    permission=Permission.TENANT_ADMIN,
    body=AgentPatch,
    answers={200: Agent},
    refuses=(Malformed, Missing, Taken, TooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_patched,
)
async def patch(call: Call[AgentPatch]) -> Answer:
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
    return Answer.json(
        agent_of(await agents.patch(call.world, call.actor, name, given, call.receipt))
    )


async def _deleted(call: Call, versions: tuple[int, ...]) -> Answer:
    return Answer.empty(204)


@endpoint(
    "DELETE",
    "/v1/agents/{id}",
    permission=Permission.TENANT_ADMIN,
    answers={204: None},
    refuses=(Missing, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_deleted,
)
async def delete(call: Call) -> Answer:
    """Delete an agent and the keys that are bound to it."""
    await agents.delete(call.world, call.actor, call.params["id"], call.receipt)
    return Answer.empty(204)


ENDPOINTS: Final = (listing, create, get, patch, delete)
