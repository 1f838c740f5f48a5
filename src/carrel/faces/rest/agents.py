"""Agents over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import agents
from carrel.core.access import Permission
from carrel.core.errors import Busy, Missing, Taken
from carrel.core.record import Record
from carrel.faces.rest.answer import Answer
from carrel.faces.rest.endpoint import Call, Received, Sent, endpoint
from carrel.faces.rest.fields import Id, Line, PageQuery, Slug
from carrel.faces.rest.wire import When, moment

_TAG: Final = "Agents"


class NewAgent(Received, frozen=True):
    slug: Slug
    name: Line
    template_id: Annotated[Id, Meta(description="An id or a slug.")] | None = None


class Agent(Sent, frozen=True):
    id: str
    slug: str
    name: str
    template_id: str | None
    created_at: When
    updated_at: When


class Agents(Sent, frozen=True):
    items: list[Agent]
    next: str | None


def agent_of(record: Record) -> Agent:
    return Agent(
        id=record.id,
        slug=record.body["slug"],
        name=record.body["name"],
        template_id=record.body["templateId"],
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
    refuses=(Missing, Taken, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_created,
)
async def create(call: Call[NewAgent]) -> Answer:
    """Create an agent, perhaps one that follows a template."""
    body = call.body
    new = agents.NewAgent(body.slug, body.name, body.template_id)
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


ENDPOINTS: Final = (listing, create, get, delete)
