"""Past reviews of pinned files: what was decided, by whom, for how many agents."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from carrel.actions.records import get_by_id_or_slug
from carrel.core.access import Actor
from carrel.core.agents.agent import AgentRecord, agent_from_record
from carrel.core.agents.template import template_from_record
from carrel.core.overlay.review_records import (
    ReviewDecision,
    ReviewRecord,
    review_from_record,
    review_index_key,
)
from carrel.core.store.record import RecordType
from carrel.ports import Ports


class ReviewFilter(Struct, frozen=True):
    """Which reviews to list: of one agent or of one template's agents, or all."""

    agent: str | None = None
    template: str | None = None
    decision: ReviewDecision | None = None


class ReviewPage(Struct, frozen=True):
    reviews: tuple[tuple[str, ReviewRecord], ...]
    """Ids and reviews, newest first."""
    total: int
    next: str | None
    """Id to continue after."""
    agents: Mapping[str, AgentRecord]
    templates: Mapping[str, str]
    """Names by id."""


async def list_reviews(
    ports: Ports, actor: Actor, criteria: ReviewFilter, *, after: str = "", limit: int = 100
) -> ReviewPage:
    """List reviews, newest first. Raises NotFound for an unknown agent or template."""
    agent = template = ""
    if criteria.agent is not None:
        agent = (await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, criteria.agent)).id
    elif criteria.template is not None:
        record = await get_by_id_or_slug(
            ports, actor.tenant, RecordType.TEMPLATE, criteria.template
        )
        template = record.id
    key = review_index_key(agent=agent, template=template, decision=criteria.decision)
    records = await ports.records.list(
        actor.tenant, RecordType.REVIEW, index_key=key, after=after, limit=limit + 1
    )
    [total] = await ports.records.count(actor.tenant, RecordType.REVIEW, [key])
    reviews = tuple((record.id, review_from_record(record)) for record in records[:limit])
    return ReviewPage(
        reviews,
        total,
        reviews[-1][0] if len(records) > limit else None,
        await _load_agents(ports, actor, {review.agent_id for _, review in reviews}),
        await _load_template_names(ports, actor, {review.template_id for _, review in reviews}),
    )


async def _load_agents(
    ports: Ports, actor: Actor, ids: set[str | None]
) -> Mapping[str, AgentRecord]:
    existing_ids = sorted(id for id in ids if id)
    records = (
        await ports.records.get(actor.tenant, RecordType.AGENT, existing_ids)
        if existing_ids
        else ()
    )
    return {record.id: agent_from_record(record) for record in records if record}


async def _load_template_names(
    ports: Ports, actor: Actor, ids: set[str | None]
) -> Mapping[str, str]:
    existing_ids = sorted(id for id in ids if id)
    records = (
        await ports.records.get(actor.tenant, RecordType.TEMPLATE, existing_ids)
        if existing_ids
        else ()
    )
    return {record.id: template_from_record(record).name for record in records if record}
