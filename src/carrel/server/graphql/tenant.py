"""Resolvers for the caller, the tenant, people, policy and audit log."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType

from carrel.actions.accounts import audit as accounts_audit
from carrel.actions.accounts import people, tenants
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import PolicyModel
from carrel.core.access import Permission
from carrel.server.graphql.arguments import parse_cursor
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.types import (
    AuditEntryType,
    NamedRecordType,
    PageType,
    PersonType,
    ViewerType,
)

query: Final = QueryType()
me: Final = ObjectType("Me")
class_rule: Final = ObjectType("ClassRule")
class_rule.set_alias("class", "file_class")
TYPES: Final = (query, me, class_rule)


async def load_person(context: ResolverContext, id: str | None) -> PersonType | None:
    """Person type of an id, or None."""
    if id is None:
        return None
    context.require(Permission.TENANT_READ)
    record = await context.people.load(id)
    return PersonType.from_record(record) if record else None


@query.field("me")
def viewer(_: Any, info: Info) -> ViewerType:
    return ViewerType.from_actor(info.context.actor)


@me.field("person")
async def viewer_person(source: ViewerType, info: Info) -> PersonType | None:
    return await load_person(info.context, source.person_id)


@query.field("tenant")
async def viewer_tenant(_: Any, info: Info) -> NamedRecordType:
    context = info.context
    context.require(Permission.TENANT_READ)
    return NamedRecordType.from_record(await tenants.get_current(context.ports, context.actor))


@query.field("people")
async def list_people(_: Any, info: Info, first: int, after: str) -> PageType[PersonType]:
    context = info.context
    context.require(Permission.TENANT_READ)
    cursor = parse_cursor(after)
    page = await people.list_people(context.ports, context.actor, cursor=cursor, limit=first)
    return PageType([PersonType.from_record(record) for record in page.items], page.next)


@query.field("person")
async def person(_: Any, info: Info, id: str) -> PersonType:
    context = info.context
    context.require(Permission.TENANT_READ)
    return PersonType.from_record(await people.get(context.ports, context.actor, id))


@query.field("policy")
async def policy(_: Any, info: Info) -> PolicyModel:
    context = info.context
    context.require(Permission.TENANT_READ)
    return await policies.get(context.ports, context.actor)


@query.field("audit")
async def audit(_: Any, info: Info, first: int, after: str) -> PageType[AuditEntryType]:
    context = info.context
    context.require(Permission.TENANT_ADMIN)
    page = await accounts_audit.list_audit_entries(
        context.ports, context.actor, before=after, limit=first
    )
    return PageType([AuditEntryType.from_entry(entry) for entry in page.items], page.next)
