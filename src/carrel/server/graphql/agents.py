"""Agents and templates, and what leads from the one to the other."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType

from carrel.actions.agents import agents, overview, templates
from carrel.core.access import Permission
from carrel.server.graphql.arguments import cursor_of
from carrel.server.graphql.context import Info
from carrel.server.graphql.tenant import person_of
from carrel.server.graphql.types import Agent, NamedRecord, Page, Person

query: Final = QueryType()
agent: Final = ObjectType("Agent")
template: Final = ObjectType("Template")
TYPES: Final = (query, agent, template)


@query.field("agents")
async def some_agents(
    _: Any,
    info: Info,
    first: int,
    after: str,
    starts_with: str,
    template_id: str | None = None,
) -> Page[Agent]:
    context = info.context
    context.must(Permission.TENANT_READ)
    found = await overview.agents(
        context.ports,
        context.actor,
        template=template_id,
        starts=starts_with,
        cursor=cursor_of(after),
        limit=first,
    )
    return Page([context.agent(one) for one in found.items], found.next)


@query.field("agent")
async def one_agent(_: Any, info: Info, id: str) -> Agent:
    context = info.context
    context.must(Permission.TENANT_READ)
    return context.agent(await agents.get(context.ports, context.actor, id))


@agent.field("template")
async def template_of(source: Agent, info: Info) -> NamedRecord | None:
    context = info.context
    if source.template_id is None:
        return None
    context.must(Permission.TENANT_READ)
    found = await context.templates.load(source.template_id)
    return NamedRecord.of(found) if found else None


@agent.field("humanPair")
async def human_of(source: Agent, info: Info) -> Person | None:
    return await person_of(info.context, source.human_pair_id)


@agent.field("owner")
async def owner_of(source: Agent, info: Info) -> Person | None:
    return await person_of(info.context, source.owner_id)


@query.field("templates")
async def some_templates(_: Any, info: Info, first: int, after: str) -> Page[NamedRecord]:
    context = info.context
    context.must(Permission.TENANT_READ)
    cursor = cursor_of(after)
    found = await templates.listing(context.ports, context.actor, cursor=cursor, limit=first)
    return Page([NamedRecord.of(one) for one in found.items], found.next)


@query.field("template")
async def one_template(_: Any, info: Info, id: str) -> NamedRecord:
    context = info.context
    context.must(Permission.TENANT_READ)
    return NamedRecord.of(await templates.get(context.ports, context.actor, id))


@template.field("followerCount")
async def follower_count(source: NamedRecord, info: Info) -> int:
    context = info.context
    context.must(Permission.TENANT_READ)
    return await context.followers.load(source.id)


@template.field("followers")
async def followers(source: NamedRecord, info: Info, first: int, after: str) -> Page[Agent]:
    context = info.context
    context.must(Permission.TENANT_READ)
    cursor = cursor_of(after)
    found = await overview.agents(
        context.ports, context.actor, template=source.id, cursor=cursor, limit=first
    )
    return Page([context.agent(one) for one in found.items], found.next)
