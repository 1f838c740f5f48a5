"""Roll back of a recorded review, for one agent or for all that were reviewed together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence, Set
from typing import Final

from msgspec.structs import replace

from carrel.actions.overlay.bulk_reviews import (
    BulkReview,
    change_all,
    iter_agents,
    store_review,
)
from carrel.actions.overlay.bulk_roll_back import load_newest_versions
from carrel.actions.overlay.pin_review_session import (
    FOR_ALL_SUFFIX,
    BulkOutcome,
    PinReviewSession,
    describe_change,
    initial_pin,
    start_review,
)
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Path
from carrel.core.overlay import pins
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_reviews import (
    ACCEPT_PREFIX,
    DECLINE_PREFIX,
    MERGE_PREFIX,
    ROLL_BACK_PREFIX,
)
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.overlay.review_records import ReviewDecision, ReviewRecord, review_from_record
from carrel.core.store.entry import Head, Version
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_PREFIXES: Final[Mapping[ReviewDecision, str]] = {
    ReviewDecision.ACCEPTED: ACCEPT_PREFIX,
    ReviewDecision.DECLINED: DECLINE_PREFIX,
    ReviewDecision.MERGED: MERGE_PREFIX,
}


async def roll_back_review(ports: Ports, actor: Actor, id: str) -> BulkReview:
    """Return every agent that a review changed to what it was before, its override included.

    An agent whose file has changed since keeps it and gets a Conflict that names it. Raises
    NotFound, and Conflict for a review that is itself a roll back.
    """
    actor.require_person_admin("review a pinned file")
    [record] = await ports.records.get(actor.tenant, RecordType.REVIEW, [id])
    if record is None:
        raise NotFound(f"no such review: {id}")
    review = review_from_record(record)
    if review.decision not in _PREFIXES:
        raise Conflict("a roll back cannot be rolled back: accept the update again")
    session, affected_ids = await start_review(ports, actor, Path(review.path)), set[str]()

    async def roll_back_each(
        session: PinReviewSession, agents: Sequence[Record]
    ) -> Mapping[str, BulkOutcome]:
        outcomes = await _roll_back_each(session, agents, review)
        affected_ids.update(outcomes)
        return outcomes

    undo = session.record(ReviewDecision.ROLLED_BACK, review.sha256)
    undo = replace(
        undo,
        agent_id=review.agent_id,
        template_id=review.template_id,
        part=review.part,
        rolls_back=id,
    )
    pages = _iter_candidates(ports, actor, review, affected_ids)
    result = await change_all(session, undo, roll_back_each, pages)
    if result.id is not None:
        await store_review(ports, actor, id, replace(review, rolled_back_by=result.id))
    return result


async def _iter_candidates(
    ports: Ports, actor: Actor, review: ReviewRecord, affected_ids: Set[str]
) -> AsyncIterator[Sequence[Record]]:
    """Iterate over agents that a review may have changed, until as many were found as it did.

    Those of its template come first. Others follow, since an agent may have left the template.
    """
    if review.agent_id is not None:
        records = await ports.records.get(actor.tenant, RecordType.AGENT, [review.agent_id])
        yield [agent for agent in records if agent]
        return
    examined = set[str]()
    for template in dict.fromkeys((review.template_id, None)):
        async for page in iter_agents(ports, actor, template):
            yield [agent for agent in page if agent.id not in examined]
            if 0 < review.changed <= len(affected_ids):
                return
            examined.update(agent.id for agent in page)


async def _roll_back_each(
    session: PinReviewSession, agents: Sequence[Record], review: ReviewRecord
) -> Mapping[str, BulkOutcome]:
    """Roll back the agents among these that the review changed."""
    stacks = await session.load_layers(agents)
    own_layers = {id: layers for id, layers in stacks.items() if layers[0].version(session.path)}
    versions = await load_newest_versions(session, own_layers)
    changed = {id: layers for id, layers in own_layers.items() if _is_of(review, *versions[id])}
    records = {agent.id: agent for agent in agents}

    def plan(id: str, layers: Layers) -> tuple[PlannedWrite, str]:
        return _plan(session, review, layers, agent_from_record(records[id]).slug, versions[id])

    return await session.change_each(records, changed, plan)


def _is_of(review: ReviewRecord, *versions: Version | None) -> bool:
    """Whether one of these versions was written by the review."""
    return any(version is not None and _wrote(review, version) for version in versions)


def _wrote(review: ReviewRecord, version: Version) -> bool:
    prefix = _PREFIXES[review.decision]
    is_same_time = version.head.at == review.at and version.author == review.author
    return is_same_time and version.reason.startswith(prefix)


def _plan(
    session: PinReviewSession,
    review: ReviewRecord,
    layers: Layers,
    name: str,
    versions: tuple[Version | None, Version | None],
) -> tuple[PlannedWrite, str]:
    """Plan the write and its reason. Raises Conflict if the file changed since the review."""
    newest, earlier = versions
    if newest is None or not _wrote(review, newest):
        raise Conflict(f"{session.path} of {name} has changed since the review")
    planned = pins.plan_undo(layers, session.path, _previous_head(session.path, layers, earlier))
    change = describe_change(layers, planned)
    together = "" if review.agent_id else FOR_ALL_SUFFIX
    reason = f"{ROLL_BACK_PREFIX}{session.path} back to what it was before{change}{together}"
    return planned, reason


def _previous_head(path: Path, layers: Layers, earlier: Version | None) -> Head | None:
    """Head before the review, or the pin that the agent was created with.

    Raises NotFound if history was pruned: an earlier version is never guessed.
    """
    if earlier is not None:
        return earlier.head
    if layers[0].version(path) > 1:
        raise NotFound(f"the version of {path} before the review was pruned")
    return next((head for tree in layers[1:] if (head := initial_pin(tree, path))), None)
