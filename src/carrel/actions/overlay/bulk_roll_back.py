"""Roll back of a bulk accept, for the agents whose pin has not moved since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carrel.actions.overlay.pin_review_session import (
    FOR_ALL_SUFFIX,
    BulkOutcome,
    PinReviewSession,
    describe_change,
    initial_pin,
    is_offered_by,
)
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Conflict, NotFound, Refusal
from carrel.core.identifiers import Digest, ScopeKind
from carrel.core.overlay import pins
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_reviews import ACCEPT_PREFIX, ROLL_BACK_PREFIX
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.store.entry import Head, Version
from carrel.core.store.record import Record

VersionsByAgent = Mapping[str, tuple[Version | None, Version | None]]
"""Newest version of each agent's file and the one before it."""


async def roll_back_each(
    review: PinReviewSession, agents: Sequence[Record], template: str | None, accepted: Digest
) -> Mapping[str, BulkOutcome]:
    """Return the pin of each agent to what it was before the bulk accept of a digest.

    Without a template, agents whose template has the file are left out; so are agents that have no
    version of their own. Returns an outcome for each of the others, by id.
    """
    stacks = await review.load_layers(agents)
    layers_by_agent = {
        id: layers
        for id, layers in stacks.items()
        if layers[0].version(review.path)
        and (template or not is_offered_by(ScopeKind.TEMPLATE, layers, review.path))
    }
    records = {agent.id: agent for agent in agents}
    versions = await load_newest_versions(review, layers_by_agent)
    results: dict[str, BulkOutcome] = {}
    planned: dict[str, tuple[PlannedWrite, str]] = {}
    for id, layers in layers_by_agent.items():
        newest, earlier = versions[id]
        if newest and _was_rolled_back(newest, accepted):
            results[id] = BulkOutcome(id)
            continue
        try:
            name = agent_from_record(records[id]).slug
            planned[id] = _plan(review, name, layers, accepted, newest, earlier)
        except Refusal as refusal:
            results[id] = BulkOutcome(id, problem=refusal)
    return {**results, **await review.commit_each(records, planned)}


async def load_newest_versions(
    review: PinReviewSession, layers_by_agent: Mapping[str, Layers]
) -> VersionsByAgent:
    """Load the two newest versions of every agent's file with one query."""
    keys = []
    for layers in layers_by_agent.values():
        tree = layers[0]
        newest = tree.version(review.path)
        keys += [(tree.scope, review.path, version) for version in (newest, newest - 1)]
    rows = await review.ports.trees.versions(keys) if keys else ()
    return {id: (rows[2 * n], rows[2 * n + 1]) for n, id in enumerate(layers_by_agent)}


def _was_rolled_back(newest: Version, accepted: Digest) -> bool:
    """Return whether the newest version is a bulk roll back of this digest."""
    reason = newest.reason
    is_bulk = reason.startswith(ROLL_BACK_PREFIX) and reason.endswith(FOR_ALL_SUFFIX)
    return is_bulk and f", from {accepted} to " in reason


def _plan(
    review: PinReviewSession,
    name: str,
    layers: Layers,
    accepted: Digest,
    newest: Version | None,
    earlier: Version | None,
) -> tuple[PlannedWrite, str]:
    """Plan the write and its reason. Raises Conflict, and NotFound without an earlier pin."""
    reason = newest.reason if newest else ""
    if reason.startswith(ACCEPT_PREFIX) and reason.endswith(f" to {accepted}"):
        raise Conflict(f"the pin of {name} was accepted for it alone")
    if not (reason.startswith(ACCEPT_PREFIX) and reason.endswith(f"{accepted}{FOR_ALL_SUFFIX}")):
        raise Conflict(f"the pin of {name} has moved since it was accepted for all")
    previous = _previous_pin(review, layers, earlier)
    base = previous.entry.base if previous and previous.entry else None
    if previous is None or base is None or base.digest == accepted:
        raise NotFound(f"{review.path} of {name} has no earlier reviewed version")
    planned = pins.plan_roll_back(layers, review.path, previous)
    change = describe_change(layers, planned)
    text = f"{ROLL_BACK_PREFIX}{review.path} back to the pin before{change}{FOR_ALL_SUFFIX}"
    return planned, text


def _previous_pin(review: PinReviewSession, layers: Layers, earlier: Version | None) -> Head | None:
    """Return the agent's earlier version, or the pin that it was created with.

    None if history was pruned: an earlier version is never guessed.
    """
    if earlier is not None and earlier.head.entry is not None:
        return earlier.head
    if earlier is None and layers[0].version(review.path) > 1:
        return None
    return next((head for tree in layers[1:] if (head := initial_pin(tree, review.path))), None)
