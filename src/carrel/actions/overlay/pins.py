"""Pins and their review: where an agent stands, accepting for one or for all, going back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.blob_contents import contents_of
from carrel.actions.overlay.reviews import (
    ROLL,
    BulkAcceptOutcome,
    PinnedFileReview,
    from_to,
    plan_accept,
    previous_reviewed_version,
    reviewer,
)
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import find_by_id_or_slug
from carrel.core.access import Actor
from carrel.core.agents.agent import by_template_index
from carrel.core.errors import Busy, NotFound
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind, Stack
from carrel.core.overlay import pins
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import stack_of
from carrel.core.overlay.pins import PinStatus
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Head, IdempotencyKey, Tree
from carrel.ports import CorruptContent, Ports

_ATTEMPTS: Final = 10
_A_PAGE: Final = 5_000
"""Agents that are read at once for a bulk accept."""


class PinReview(Struct, frozen=True):
    """Where an agent stands with a pinned file, both texts included."""

    pin: PinStatus
    pinned: bytes | CorruptContent | None
    latest: bytes | CorruptContent | None


async def status(ports: Ports, actor: Actor, name: str) -> tuple[PinReview, ...]:
    """Every pinned file that the agent has or could have, in order of path. Raises Missing.

    A text that cannot be had fails alone.
    """
    [found] = await pin_statuses(ports, actor, [await _agent(ports, actor, name)])
    blobs = {blob for pin in found for blob in (pin.pinned, pin.latest) if blob}
    texts = await contents_of(ports, blobs)
    return tuple(
        PinReview(
            pin,
            texts[pin.pinned.digest] if pin.pinned else None,
            texts[pin.latest.digest] if pin.latest else None,
        )
        for pin in found
    )


async def pin_statuses(
    ports: Ports, actor: Actor, agents: Sequence[Record]
) -> tuple[tuple[PinStatus, ...], ...]:
    """Where each of these agents stands with every pinned file, without the texts, in one reading.

    Raises Missing where one is not within the caller's reach.
    """
    if not all(can_see_agent(actor, agent) for agent in agents):
        raise NotFound("there is no such agent")
    stacks = [stack_of(agent) for agent in agents]
    classes = (await load_rules(ports, actor.tenant)).policy.classes
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    found = []
    for stack in stacks:
        layers = [trees[scope] for scope in stack]
        paths = sorted({path for tree in layers for path in tree.heads})
        held = [path for path in paths if classes.class_of(path) is FileClass.PINNED]
        found.append(tuple(pins.pin_of(path, layers) for path in held))
    return tuple(found)


async def accept(
    ports: Ports,
    actor: Actor,
    name: str,
    path: Path,
    reviewed: Digest,
    receipt: IdempotencyKey | None = None,
) -> PinStatus:
    """Move an agent's pin to what was reviewed. Raises Stale where that has changed since."""
    for _ in range(_ATTEMPTS):
        review = await reviewer(ports, actor, path, receipt)
        stack = stack_of(await _agent(ports, actor, name))
        layers = await ports.trees.read(stack, (path,))
        decided = pins.accept(layers, path, reviewed)
        if decided is None:
            return pins.pin_of(path, layers)
        await review.readable(decided)
        head = await review.commit(decided, plan_accept(layers, decided))
        if head is not None:
            return _after(stack, layers, path, head)
    raise Busy(f"{path} is being changed by many others")


async def accept_for_all(
    ports: Ports, actor: Actor, template: str, path: Path, reviewed: Digest
) -> tuple[BulkAcceptOutcome, ...]:
    """The same for every agent that follows a template: one outcome each, in order of id.

    What one is refused stops no other. Takes one reading for thousands and one transaction for a
    thousand. Raises Missing where there is nothing to accept.
    """
    review = await reviewer(ports, actor, path)
    followed = await find_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, template)
    scopes = (ScopeKind.TEMPLATE, followed.id), (ScopeKind.DEFAULTS, "")
    beneath = await ports.trees.read([Scope(actor.tenant, *scope) for scope in scopes], (path,))
    if upstream_blob(path, beneath) is None:
        raise NotFound(f"there is no {path} to accept")
    results: list[BulkAcceptOutcome] = []
    while True:
        after = results[-1].agent if results else ""
        agents = await ports.records.list(
            actor.tenant,
            RecordType.AGENT,
            link=by_template_index(followed.id),
            after=after,
            limit=_A_PAGE,
        )
        results += await _accepted(review, followed.id, agents, reviewed)
        if len(agents) < _A_PAGE:
            return tuple(results)
        review = await reviewer(ports, actor, path)


async def _accepted(
    review: PinnedFileReview, template: str, agents: Sequence[Record], reviewed: Digest
) -> Sequence[BulkAcceptOutcome]:
    """What became of each; those who lost to somebody else's change are decided again."""
    results: dict[str, BulkAcceptOutcome] = {}
    again = agents
    for _ in range(_ATTEMPTS):
        results |= await review.accept_each(again, reviewed)
        lost = [id for id, result in results.items() if isinstance(result.problem, Busy)]
        if not lost:
            break
        review = await reviewer(review.ports, review.actor, review.path)
        found = await review.ports.records.get(review.actor.tenant, RecordType.AGENT, lost)
        again = [agent for agent in found if agent and agent.body.get("templateId") == template]
        for id in set(lost) - {agent.id for agent in again}:
            results[id] = BulkAcceptOutcome(
                id, problem=NotFound("it follows the template no longer")
            )
    return [results[agent.id] for agent in agents]


async def roll_back(
    ports: Ports,
    actor: Actor,
    name: str,
    path: Path,
    version: int | None = None,
    receipt: IdempotencyKey | None = None,
) -> PinStatus:
    """Go back to what was reviewed before, or at a version of the agent's own history."""
    for _ in range(_ATTEMPTS):
        review = await reviewer(ports, actor, path, receipt)
        stack = stack_of(await _agent(ports, actor, name))
        layers = await ports.trees.read(stack, (path,))
        was = await previous_reviewed_version(ports, layers, path, version)
        decided = pins.roll_back(layers, path, was)
        await review.readable(decided)
        own = not any(was is tree.heads.get(path) for tree in layers[1:])
        to = f"its version {was.version}" if own else "what it was made with"
        reason = f"{ROLL}{path.text} back to {to}"
        reason += from_to(layers, decided)
        head = await review.commit(decided, reason)
        if head is not None:
            return _after(stack, layers, path, head)
    raise Busy(f"{path} is being changed by many others")


async def _agent(ports: Ports, actor: Actor, name: str) -> Record:
    found = await find_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, name)
    if not can_see_agent(actor, found):
        raise NotFound(f"there is no agent {name}")
    return found


def can_see_agent(actor: Actor, agent: Record) -> bool:
    """Whether a caller may know of an agent's files: one confined to another workspace may not."""
    return not actor.is_confined or actor.agent == agent.id


def _after(stack: Stack, layers: Layers, path: Path, head: Head) -> PinStatus:
    own = Tree(stack[0], head.revision, {path: head})
    return pins.pin_of(path, (own, *layers[1:]))
