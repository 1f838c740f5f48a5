"""Mutations that accept pinned updates and roll pins back."""

from __future__ import annotations

from typing import Any, Final

from ariadne import MutationType

from carrel.actions.agents import agents
from carrel.actions.overlay import bulk_reviews, pin_declines, pin_reviews, review_undo
from carrel.actions.overlay.pin_declines import DeclinedOffer
from carrel.actions.overlay.pin_review_session import BulkOutcome
from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.server.graphql.arguments import parse_digest_argument, parse_reviewed_digest
from carrel.server.graphql.context import Info
from carrel.server.graphql.idempotency import IdempotentMutation, run_mutation_once
from carrel.server.graphql.types import (
    AgentType,
    BulkAcceptResultType,
    BulkOutcomeType,
    BulkRollBackResultType,
)

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
) -> AgentType:
    context = info.context
    ports, actor = context.ports, context.actor
    context.begin_mutation(Permission.TENANT_ADMIN)
    path = Path(filename)
    reviewed = parse_reviewed_digest(latest_sha)
    arguments = {"agentId": agent_id, "filename": path.text, "latestSha": reviewed}
    request = IdempotentMutation("acceptTemplateUpdate", arguments, idempotency_key)

    async def reload() -> Record:
        return await agents.get(ports, actor, agent_id)

    async def accept_update(key: IdempotencyKey | None) -> Record:
        await pin_reviews.accept(ports, actor, agent_id, path, reviewed, key)
        return await reload()

    record = await run_mutation_once(ports, actor, request, accept_update, reload)
    return context.agent_from_record(record)


@mutation.field("acceptTemplateUpdateBulk")
async def accept_for_all(
    _: Any,
    info: Info,
    template_id: str,
    filename: str,
    tenant_id: str,
    latest_sha: str | None = None,
) -> BulkAcceptResultType:
    context = info.context
    context.begin_mutation(Permission.TENANT_ADMIN)
    if tenant_id != context.actor.tenant:
        raise NotFound("no such tenant")
    return await _accept_for_all(info, template_id, filename, latest_sha)


@mutation.field("acceptDefaultsUpdateBulk")
async def accept_default_for_all(
    _: Any, info: Info, filename: str, latest_sha: str | None = None
) -> BulkAcceptResultType:
    info.context.begin_mutation(Permission.TENANT_ADMIN)
    return await _accept_for_all(info, None, filename, latest_sha)


async def _accept_for_all(
    info: Info, template: str | None, filename: str, latest_sha: str | None
) -> BulkAcceptResultType:
    path, reviewed = Path(filename), parse_reviewed_digest(latest_sha)
    ports, actor = info.context.ports, info.context.actor
    outcomes = await bulk_reviews.accept_for_all(ports, actor, template, path, reviewed)
    results = list(map(_outcome_to_type, outcomes))
    accepted = sum(outcome.success for outcome in results)
    return BulkAcceptResultType(accepted, len(results) - accepted, results)


def _outcome_to_type(outcome: BulkOutcome) -> BulkOutcomeType:
    error = str(outcome.problem) if outcome.problem else None
    return BulkOutcomeType(outcome.agent, outcome.problem is None, error)


@mutation.field("rollBackTemplateUpdateBulk")
async def roll_back_for_all(
    _: Any, info: Info, template_id: str, filename: str, accepted_sha: str
) -> BulkRollBackResultType:
    info.context.begin_mutation(Permission.TENANT_ADMIN)
    return await _roll_back_for_all(info, template_id, filename, accepted_sha)


@mutation.field("rollBackDefaultsUpdateBulk")
async def roll_back_default_for_all(
    _: Any, info: Info, filename: str, accepted_sha: str
) -> BulkRollBackResultType:
    info.context.begin_mutation(Permission.TENANT_ADMIN)
    return await _roll_back_for_all(info, None, filename, accepted_sha)


async def _roll_back_for_all(
    info: Info, template: str | None, filename: str, accepted_sha: str
) -> BulkRollBackResultType:
    path, accepted = Path(filename), parse_digest_argument("acceptedSha", accepted_sha)
    ports, actor = info.context.ports, info.context.actor
    outcomes = await bulk_reviews.roll_back_for_all(ports, actor, template, path, accepted)
    results = list(map(_outcome_to_type, outcomes))
    rolled_back = sum(outcome.success for outcome in results)
    return BulkRollBackResultType(rolled_back, len(results) - rolled_back, results)


@mutation.field("declineTemplateUpdate")
async def decline(
    _: Any,
    info: Info,
    agent_id: str,
    filename: str,
    reason: str,
    latest_sha: str | None = None,
) -> AgentType:
    context = info.context
    ports, actor = context.ports, context.actor
    context.begin_mutation(Permission.TENANT_ADMIN)
    reviewed = None if latest_sha is None else parse_digest_argument("latestSha", latest_sha)
    declined = DeclinedOffer(reviewed, reason)
    await pin_declines.decline(ports, actor, agent_id, Path(filename), declined)
    return context.agent_from_record(await agents.get(ports, actor, agent_id))


@mutation.field("rollBackReview")
async def roll_back_review(_: Any, info: Info, review_id: str) -> BulkRollBackResultType:
    info.context.begin_mutation(Permission.TENANT_ADMIN)
    ports, actor = info.context.ports, info.context.actor
    review = await review_undo.roll_back_review(ports, actor, review_id)
    results = list(map(_outcome_to_type, review.outcomes))
    rolled_back = sum(outcome.success for outcome in results)
    return BulkRollBackResultType(rolled_back, len(results) - rolled_back, results)


@mutation.field("rollBackPin")
async def roll_back(
    _: Any, info: Info, agent_id: str, filename: str, version: int | None = None
) -> AgentType:
    context = info.context
    ports, actor = context.ports, context.actor
    context.begin_mutation(Permission.TENANT_ADMIN)
    await pin_reviews.roll_back(ports, actor, agent_id, Path(filename), version)
    return context.agent_from_record(await agents.get(ports, actor, agent_id))
