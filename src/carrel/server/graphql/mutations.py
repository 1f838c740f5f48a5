"""Changing agents, templates, people and the policy."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from ariadne import MutationType

from carrel.actions import idempotency
from carrel.actions.accounts import people
from carrel.actions.accounts.people import Profile
from carrel.actions.agents import agents, templates
from carrel.actions.policy import policies
from carrel.actions.policy.policies import PolicyModel
from carrel.core.access import Actor, CredentialKind, Permission
from carrel.core.errors import ValidationError
from carrel.core.store.record import Record
from carrel.core.store.tree import IdempotencyKey
from carrel.core.text_validation import single_line
from carrel.server.graphql.arguments import Given, config_of, outside, reason_of, require_arguments
from carrel.server.graphql.context import Info
from carrel.server.graphql.types import Agent, NamedRecord, Person

mutation: Final = MutationType()
TYPES: Final = (mutation,)


@mutation.field("createAgentFromTemplate")
async def create_agent(_: Any, info: Info, input: Given) -> Agent:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    team = input.get("team_id")
    config = {} if team is None else {"teamId": single_line(team, "teamId")}
    new = agents.NewAgent(
        slug=input["slug"],
        name=input["name"],
        template=input["template_id"],
        config=config,
    )
    given = {name: value for name, value in input.items() if name != "idempotency_key"}
    asked = idempotency.IdempotentRequest(
        "createAgentFromTemplate", given, input.get("idempotency_key")
    )

    async def act(receipt: IdempotencyKey | None) -> Record:
        return await agents.create(context.ports, context.actor, new, receipt)

    async def again() -> Record:
        return await agents.get(context.ports, context.actor, new.slug)

    return context.agent(
        await idempotency.run_once(context.ports, context.actor, asked, act, again)
    )


@mutation.field("updateAgent")
async def update_agent(_: Any, info: Info, id: str, input: Given) -> Agent:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    plain = {name: value for name, value in input.items() if name != "config"}
    given: dict[str, Any] = outside(plain)
    if "config" in input:
        given["config"] = config_of(input["config"])
    require_arguments(given, ("name", "slug", "isShared"))
    changed = await agents.patch(context.ports, context.actor, id, given)
    return context.agent(changed)


@mutation.field("deleteAgent")
async def delete_agent(_: Any, info: Info, id: str) -> bool:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    await agents.delete(context.ports, context.actor, id)
    return True


def _themselves(actor: Actor, id: str) -> bool:
    return actor.kind is CredentialKind.PERSON and actor.person == id


@mutation.field("updateUserProfile")
async def update_profile(_: Any, info: Info, user_id: str, input: Given) -> Person:
    context = info.context
    if _themselves(context.actor, user_id):
        context.must(Permission.TENANT_READ)
        context.begin(Permission.WORKSPACE_WRITE)
    else:
        context.begin(Permission.TENANT_ADMIN)
    changed = await people.patch(context.ports, context.actor, user_id, input)
    return Person.of(changed)


@mutation.field("createPerson")
async def create_person(_: Any, info: Info, input: Given) -> Person:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    made = await people.create(context.ports, context.actor, Profile(**input))
    return Person.of(made)


@mutation.field("updatePerson")
async def update_person(_: Any, info: Info, id: str, input: Given) -> Person:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    given = require_arguments(input, ("name", "email", "role"))
    changed = await people.patch(context.ports, context.actor, id, given)
    return Person.of(changed)


@mutation.field("deletePerson")
async def delete_person(_: Any, info: Info, id: str) -> bool:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    await people.delete(context.ports, context.actor, id)
    return True


@mutation.field("createTemplate")
async def create_template(_: Any, info: Info, input: Given) -> NamedRecord:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    made = await templates.create(context.ports, context.actor, input["slug"], input["name"])
    return NamedRecord.of(made)


@mutation.field("updateTemplate")
async def update_template(_: Any, info: Info, id: str, input: Given) -> NamedRecord:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    given = require_arguments(input, ("name", "slug"))
    changed = await templates.patch(context.ports, context.actor, id, given)
    return NamedRecord.of(changed)


@mutation.field("deleteTemplate")
async def delete_template(_: Any, info: Info, id: str) -> bool:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    await templates.delete(context.ports, context.actor, id)
    return True


@mutation.field("putPolicy")
async def put_policy(_: Any, info: Info, policy: Given, reason: str) -> PolicyModel:
    context = info.context
    context.begin(Permission.TENANT_ADMIN)
    try:
        form = msgspec.convert(outside(policy), PolicyModel)
    except msgspec.ValidationError as wrong:
        raise ValidationError(f"the policy does not fit: {wrong}") from None
    put = await policies.put(context.ports, context.actor, form, reason_of(reason))
    return put
