"""Pins and their review: where an agent stands, accepting for one or for all, going back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.blob_contents import contents_of
from carrel.actions.overlay.reviews import (
    ROLL,
    Review,
    Reviewed,
    accepting,
    earlier,
    from_to,
    reviewer,
)
from carrel.actions.policy.tenant_rules import rules_of
from carrel.actions.records import find_named
from carrel.core.access import Actor
from carrel.core.agents.agent import of_template
from carrel.core.errors import Busy, Missing
from carrel.core.identifiers import Digest, Kind, Path, Scope, Stack
from carrel.core.overlay import pins as pinned
from carrel.core.overlay.compose import Layers, offered
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import stack_of
from carrel.core.overlay.pins import Pin
from carrel.core.store.record import Noun, Record
from carrel.core.store.tree import Head, ReceiptKey, Tree
from carrel.ports import Corrupt, World

_ATTEMPTS: Final = 10
_A_PAGE: Final = 5_000
"""Agents that are read at once for a bulk accept."""


class Status(Struct, frozen=True):
    """Where an agent stands with a pinned file, both texts included."""

    pin: Pin
    pinned: bytes | Corrupt | None
    latest: bytes | Corrupt | None


async def status(world: World, actor: Actor, name: str) -> tuple[Status, ...]:
    """Every pinned file that the agent has or could have, in order of path. Raises Missing.

    A text that cannot be had fails alone.
    """
    [found] = await standings(world, actor, [await _agent(world, actor, name)])
    blobs = {blob for pin in found for blob in (pin.pinned, pin.latest) if blob}
    texts = await contents_of(world, blobs)
    return tuple(
        Status(
            pin,
            texts[pin.pinned.digest] if pin.pinned else None,
            texts[pin.latest.digest] if pin.latest else None,
        )
        for pin in found
    )


async def standings(
    world: World, actor: Actor, agents: Sequence[Record]
) -> tuple[tuple[Pin, ...], ...]:
    """Where each of these agents stands with every pinned file, without the texts, in one reading.

    Raises Missing where one is not within the caller's reach.
    """
    if not all(within_reach(actor, agent) for agent in agents):
        raise Missing("there is no such agent")
    stacks = [stack_of(agent) for agent in agents]
    classes = (await rules_of(world, actor.tenant)).policy.classes
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await world.trees.read(scopes), strict=True))
    found = []
    for stack in stacks:
        layers = [trees[scope] for scope in stack]
        paths = sorted({path for tree in layers for path in tree.heads})
        held = [path for path in paths if classes.of(path) is FileClass.PINNED]
        found.append(tuple(pinned.pin_of(path, layers) for path in held))
    return tuple(found)


async def accept(
    world: World,
    actor: Actor,
    name: str,
    path: Path,
    reviewed: Digest,
    receipt: ReceiptKey | None = None,
) -> Pin:
    """Move an agent's pin to what was reviewed. Raises Stale where that has changed since."""
    for _ in range(_ATTEMPTS):
        review = await reviewer(world, actor, path, receipt)
        stack = stack_of(await _agent(world, actor, name))
        layers = await world.trees.read(stack, (path,))
        decided = pinned.accept(layers, path, reviewed)
        if decided is None:
            return pinned.pin_of(path, layers)
        await review.readable(decided)
        head = await review.commit(decided, accepting(layers, decided))
        if head is not None:
            return _after(stack, layers, path, head)
    raise Busy(f"{path} is being changed by many others")


async def accept_for_all(
    world: World, actor: Actor, template: str, path: Path, reviewed: Digest
) -> tuple[Reviewed, ...]:
    """The same for every agent that follows a template: one outcome each, in order of id.

    What one is refused stops no other. Takes one reading for thousands and one transaction for a
    thousand. Raises Missing where there is nothing to accept.
    """
    review = await reviewer(world, actor, path)
    followed = await find_named(world, actor.tenant, Noun.TEMPLATE, template)
    scopes = (Kind.TEMPLATE, followed.id), (Kind.DEFAULTS, "")
    beneath = await world.trees.read([Scope(actor.tenant, *scope) for scope in scopes], (path,))
    if offered(path, beneath) is None:
        raise Missing(f"there is no {path} to accept")
    results: list[Reviewed] = []
    while True:
        after = results[-1].agent if results else ""
        agents = await world.records.list(
            actor.tenant, Noun.AGENT, link=of_template(followed.id), after=after, limit=_A_PAGE
        )
        results += await _accepted(review, followed.id, agents, reviewed)
        if len(agents) < _A_PAGE:
            return tuple(results)
        review = await reviewer(world, actor, path)


async def _accepted(
    review: Review, template: str, agents: Sequence[Record], reviewed: Digest
) -> Sequence[Reviewed]:
    """What became of each; those who lost to somebody else's change are decided again."""
    results: dict[str, Reviewed] = {}
    again = agents
    for _ in range(_ATTEMPTS):
        results |= await review.accept_each(again, reviewed)
        lost = [id for id, result in results.items() if isinstance(result.problem, Busy)]
        if not lost:
            break
        review = await reviewer(review.world, review.actor, review.path)
        found = await review.world.records.get(review.actor.tenant, Noun.AGENT, lost)
        again = [agent for agent in found if agent and agent.body.get("templateId") == template]
        for id in set(lost) - {agent.id for agent in again}:
            results[id] = Reviewed(id, problem=Missing("it follows the template no longer"))
    return [results[agent.id] for agent in agents]


async def roll_back(
    world: World,
    actor: Actor,
    name: str,
    path: Path,
    version: int | None = None,
    receipt: ReceiptKey | None = None,
) -> Pin:
    """Go back to what was reviewed before, or at a version of the agent's own history."""
    for _ in range(_ATTEMPTS):
        review = await reviewer(world, actor, path, receipt)
        stack = stack_of(await _agent(world, actor, name))
        layers = await world.trees.read(stack, (path,))
        was = await earlier(world, layers, path, version)
        decided = pinned.roll_back(layers, path, was)
        await review.readable(decided)
        own = not any(was is tree.heads.get(path) for tree in layers[1:])
        to = f"its version {was.version}" if own else "what it was made with"
        why = f"{ROLL}{path.text} back to {to}"
        why += from_to(layers, decided)
        head = await review.commit(decided, why)
        if head is not None:
            return _after(stack, layers, path, head)
    raise Busy(f"{path} is being changed by many others")


async def _agent(world: World, actor: Actor, name: str) -> Record:
    found = await find_named(world, actor.tenant, Noun.AGENT, name)
    if not within_reach(actor, found):
        raise Missing(f"there is no agent {name}")
    return found


def within_reach(actor: Actor, agent: Record) -> bool:
    """Whether a caller may know of an agent's files: one confined to another workspace may not."""
    return not actor.bound or actor.agent == agent.id


def _after(stack: Stack, layers: Layers, path: Path, head: Head) -> Pin:
    own = Tree(stack[0], head.revision, {path: head})
    return pinned.pin_of(path, (own, *layers[1:]))
