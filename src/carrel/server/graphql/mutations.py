"""Mutations of agents, templates, people and the policy."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from ariadne import MutationType

from carrel.actions.accounts import people
from carrel.actions.agents import agents, templates
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import PolicyModel
from carrel.core.access import Actor, CredentialKind, Permission
from carrel.core.accounts import PersonRecord
from carrel.core.errors import ValidationError
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.core.text_validation import single_line
from carrel.server.graphql.arguments import (
    ArgumentMap,
    parse_config,
    parse_reason,
    require_not_null,
    to_camel_case_keys,
)
from carrel.server.graphql.context import Info
from carrel.server.graphql.idempotency import IdempotentMutation, run_mutation_once
from carrel.server.graphql.types import AgentType, NamedRecordType, PersonType

mutation: Final = MutationType()
TYPES: Final = (mutation,)


@mutation.field("createAgentFromTemplate")
async def create_agent(_: Any, info: Info, input: ArgumentMap) -> AgentType:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    team = input.get("team_id")
    config = {} if team is None else {"teamId": single_line(team, "teamId")}
    new_agent = agents.NewAgent(
        slug=input["slug"],
        name=input["name"],
        template=input["template_id"],
        config=config,
    )
    arguments = {name: value for name, value in input.items() if name != "idempotency_key"}
    request = IdempotentMutation("createAgentFromTemplate", arguments, input.get("idempotency_key"))

    async def create(idempotency_key: IdempotencyKey | None) -> Record:
        return await agents.create(context.ports, context.actor, new_agent, idempotency_key)

    async def reload() -> Record:
        return await agents.get(context.ports, context.actor, new_agent.slug)

    return context.agent_from_record(
        await run_mutation_once(context.ports, context.actor, request, create, reload)
    )


@mutation.field("updateAgent")
async def update_agent(_: Any, info: Info, id: str, input: ArgumentMap) -> AgentType:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    changes = dict(input)
    if "config" in input:
        changes["config"] = parse_config(input["config"])
    require_not_null(to_camel_case_keys(changes), ("name", "slug", "isShared", "tags"))
    record = await agents.patch(context.ports, context.actor, id, changes)
    return context.agent_from_record(record)


@mutation.field("deleteAgent")
async def delete_agent(_: Any, info: Info, id: str) -> bool:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    await agents.delete(context.ports, context.actor, id)
    return True


def _is_own_profile(actor: Actor, id: str) -> bool:
    return actor.kind is CredentialKind.PERSON and actor.person == id


@mutation.field("updateUserProfile")
async def update_profile(_: Any, info: Info, user_id: str, input: ArgumentMap) -> PersonType:
    context = info.context
    if _is_own_profile(context.actor, user_id):
        context.require(Permission.TENANT_READ)
        context.begin_mutation(Permission.WORKSPACE_WRITE)
    else:
        context.begin_mutation(Permission.TENANT_ADMIN)
    record = await people.patch(context.ports, context.actor, user_id, input)
    return PersonType.from_record(record)


@mutation.field("createPerson")
async def create_person(_: Any, info: Info, input: ArgumentMap) -> PersonType:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    record = await people.create(context.ports, context.actor, PersonRecord(**input))
    return PersonType.from_record(record)


@mutation.field("updatePerson")
async def update_person(_: Any, info: Info, id: str, input: ArgumentMap) -> PersonType:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    changes = require_not_null(input, ("name", "email", "role"))
    record = await people.patch(context.ports, context.actor, id, changes)
    return PersonType.from_record(record)


@mutation.field("deletePerson")
async def delete_person(_: Any, info: Info, id: str) -> bool:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    await people.delete(context.ports, context.actor, id)
    return True


@mutation.field("createTemplate")
async def create_template(_: Any, info: Info, input: ArgumentMap) -> NamedRecordType:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    record = await templates.create(context.ports, context.actor, input["slug"], input["name"])
    return NamedRecordType.from_record(record)


@mutation.field("updateTemplate")
async def update_template(_: Any, info: Info, id: str, input: ArgumentMap) -> NamedRecordType:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    changes = require_not_null(input, ("name", "slug"))
    record = await templates.patch(context.ports, context.actor, id, changes)
    return NamedRecordType.from_record(record)


@mutation.field("deleteTemplate")
async def delete_template(_: Any, info: Info, id: str) -> bool:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    await templates.delete(context.ports, context.actor, id)
    return True


@mutation.field("putPolicy")
async def put_policy(
    _: Any, info: Info, policy: ArgumentMap, reason: str, confirm: bool
) -> PolicyModel:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    try:
        model = msgspec.convert(to_camel_case_keys(policy), PolicyModel)
    except msgspec.ValidationError as error:
        raise ValidationError(f"invalid policy: {error}") from None
    return await policies.put(
        context.ports, context.actor, model, parse_reason(reason), confirm=confirm
    )
