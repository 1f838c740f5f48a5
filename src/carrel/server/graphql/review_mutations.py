"""Accepting what was reviewed, for one agent or for all, and going back."""

from __future__ import annotations

from typing import Any, Final

from ariadne import MutationType

from carrel.actions import idempotency
from carrel.actions.agents import agents
from carrel.actions.overlay import pins
from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path
from carrel.core.store.record import Record
from carrel.core.store.tree import IdempotencyKey
from carrel.server.graphql.arguments import reviewed_of
from carrel.server.graphql.context import Info
from carrel.server.graphql.types import Agent, BulkAcceptOutcome, BulkAcceptResult

mutation: Final = MutationType()
TYPES: Final = (mutation,)


@mutation.field("acceptTemplateUpdate")
async def accept(
    _: Any,
    info: Info,
    agent_id: str,
    filename: str,
    idempotency_key: str | None = None,
    latest_sha: str | None = None,
) -> Agent:
    context = info.context
    ports, actor = context.ports, context.actor
    context.begin(Permission.TENANT_ADMIN)
    path = Path(filename)
    reviewed = reviewed_of(latest_sha)
    known = {"agentId": agent_id, "filename": path.text, "latestSha": reviewed}
    asked = idempotency.IdempotentRequest("acceptTemplateUpdate", known, idempotency_key)

    async def again() -> Record:
        return await agents.get(ports, actor, agent_id)

    async def act(receipt: IdempotencyKey | None) -> Record:
        await pins.accept(ports, actor, agent_id, path, reviewed, receipt)
        return await again()

    accepted = await idempotency.run_once(ports, actor, asked, act, again)
    return context.agent(accepted)


@mutation.field("acceptTemplateUpdateBulk")
async def accept_for_all(
    _: Any,
    info: Info,
    template_id: str,
    filename: str,
    tenant_id: str,
    latest_sha: str | None = None,
) -> BulkAcceptResult:
    context = info.context
    ports, actor = context.ports, context.actor
    context.begin(Permission.TENANT_ADMIN)
    if tenant_id != actor.tenant:
        raise NotFound("there is no such tenant")
    path = Path(filename)
    reviewed = reviewed_of(latest_sha)
    found = await pins.accept_for_all(ports, actor, template_id, path, reviewed)
    results = [
        BulkAcceptOutcome(one.agent, one.problem is None, str(one.problem) if one.problem else None)
        for one in found
    ]
    accepted = sum(one.success for one in results)
    return BulkAcceptResult(accepted, len(results) - accepted, results)


@mutation.field("rollBackPin")
async def roll_back(
    _: Any, info: Info, agent_id: str, filename: str, version: int | None = None
) -> Agent:
    context = info.context
    ports, actor = context.ports, context.actor
    context.begin(Permission.TENANT_ADMIN)
    await pins.roll_back(ports, actor, agent_id, Path(filename), version)
    return context.agent(await agents.get(ports, actor, agent_id))
