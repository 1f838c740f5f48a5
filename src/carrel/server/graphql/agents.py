"""Resolvers for agents and templates."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType

from carrel.actions.agents import agents, overview, templates
from carrel.actions.records import Page
from carrel.core.access import Permission
from carrel.core.store.record import Record
from carrel.server.graphql.arguments import parse_cursor
from carrel.server.graphql.context import Info
from carrel.server.graphql.tenant import load_person
from carrel.server.graphql.types import AgentType, NamedRecordType, PageType, PersonType

query: Final = QueryType()
agent: Final = ObjectType("Agent")
template: Final = ObjectType("Template")
_CONDITIONS: Final = {
    "starts_with": "name_prefix",
    "template_id": "template",
    "search": "q",
    "tag": "tag",
}
"""Fields of AgentFilter by argument."""
TYPES: Final = (query, agent, template)


@query.field("agents")
async def list_agents(
    _: Any, info: Info, first: int, after: str, **filters: Any
) -> PageType[AgentType]:
    context = info.context
    context.require(Permission.TENANT_READ)
    conditions = {_CONDITIONS[name]: value for name, value in filters.items()}
    cursor = parse_cursor(after)
    page = await overview.list_agents(
        context.ports, context.actor, cursor=cursor, limit=first, **conditions
    )
    return _agent_page(info, page)


def _agent_page(info: Info, page: Page[Record]) -> PageType[AgentType]:
    agents = [info.context.agent_from_record(record) for record in page.items]
    return PageType(agents, page.next, page.total)


@query.field("agent")
async def get_agent(_: Any, info: Info, id: str) -> AgentType:
    context = info.context
    context.require(Permission.TENANT_READ)
    return context.agent_from_record(await agents.get(context.ports, context.actor, id))


@agent.field("template")
async def load_template(source: AgentType, info: Info) -> NamedRecordType | None:
    context = info.context
    if source.template_id is None:
        return None
    context.require(Permission.TENANT_READ)
    record = await context.templates.load(source.template_id)
    return NamedRecordType.from_record(record) if record else None


@agent.field("humanPair")
async def load_human_pair(source: AgentType, info: Info) -> PersonType | None:
    return await load_person(info.context, source.human_pair_id)


@agent.field("owner")
async def load_owner(source: AgentType, info: Info) -> PersonType | None:
    return await load_person(info.context, source.owner_id)


@query.field("templates")
async def list_templates(_: Any, info: Info, first: int, after: str) -> PageType[NamedRecordType]:
    context = info.context
    context.require(Permission.TENANT_READ)
    cursor = parse_cursor(after)
    page = await templates.list_templates(context.ports, context.actor, cursor=cursor, limit=first)
    return PageType(
        [NamedRecordType.from_record(record) for record in page.items], page.next, page.total
    )


@query.field("template")
async def get_template(_: Any, info: Info, id: str) -> NamedRecordType:
    context = info.context
    context.require(Permission.TENANT_READ)
    return NamedRecordType.from_record(await templates.get(context.ports, context.actor, id))


@template.field("followerCount")
async def follower_count(source: NamedRecordType, info: Info) -> int:
    context = info.context
    context.require(Permission.TENANT_READ)
    return await context.followers.load(source.id)


@template.field("followers")
async def list_followers(
    source: NamedRecordType, info: Info, first: int, after: str
) -> PageType[AgentType]:
    context = info.context
    context.require(Permission.TENANT_READ)
    cursor = parse_cursor(after)
    page = await overview.list_agents(
        context.ports, context.actor, template=source.id, cursor=cursor, limit=first
    )
    return PageType(
        [context.agent_from_record(record) for record in page.items], page.next, page.total
    )
