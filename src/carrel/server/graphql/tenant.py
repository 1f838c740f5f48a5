"""Who asks, and the facts of the tenant: people, policy, audit."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType

from carrel.actions.accounts import audit as accounts_audit
from carrel.actions.accounts import people, tenants
from carrel.actions.policy import policies
from carrel.actions.policy.policies import PolicyModel
from carrel.core.access import Permission
from carrel.server.graphql.arguments import cursor_of, number_of
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.types import AuditEntryType, NamedRecord, Page, Person, Viewer

query: Final = QueryType()
me: Final = ObjectType("Me")
class_rule: Final = ObjectType("ClassRule")
class_rule.set_alias("class", "file_class")
TYPES: Final = (query, me, class_rule)


async def person_of(context: ResolverContext, id: str | None) -> Person | None:
    """Somebody whom something else names, by their id."""
    if id is None:
        return None
    context.must(Permission.TENANT_READ)
    found = await context.people.load(id)
    return Person.of(found) if found else None


@query.field("me")
def viewer(_: Any, info: Info) -> Viewer:
    return Viewer.of(info.context.actor)


@me.field("person")
async def own_person(source: Viewer, info: Info) -> Person | None:
    return await person_of(info.context, source.person_id)


@query.field("tenant")
async def own_tenant(_: Any, info: Info) -> NamedRecord:
    context = info.context
    context.must(Permission.TENANT_READ)
    return NamedRecord.of(await tenants.me(context.ports, context.actor))


@query.field("people")
async def everybody(_: Any, info: Info, first: int, after: str) -> Page[Person]:
    context = info.context
    context.must(Permission.TENANT_READ)
    cursor = cursor_of(after)
    found = await people.listing(context.ports, context.actor, cursor=cursor, limit=first)
    return Page([Person.of(one) for one in found.items], found.next)


@query.field("person")
async def person(_: Any, info: Info, id: str) -> Person:
    context = info.context
    context.must(Permission.TENANT_READ)
    return Person.of(await people.get(context.ports, context.actor, id))


@query.field("policy")
async def policy(_: Any, info: Info) -> PolicyModel:
    context = info.context
    context.must(Permission.TENANT_READ)
    return await policies.get(context.ports, context.actor)


@query.field("audit")
async def audit(_: Any, info: Info, first: int, after: str) -> Page[AuditEntryType]:
    context = info.context
    context.must(Permission.TENANT_ADMIN)
    before = number_of(after)
    found = await accounts_audit.listing(context.ports, context.actor, before=before, limit=first)
    return Page([AuditEntryType.of(entry) for entry in found.items], found.next)
