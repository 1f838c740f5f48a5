"""Pins and their review: where an agent stands, accepting for one or for all, going back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from msgspec import Struct

from carrel.actions.contents import contents_of
from carrel.actions.records import find_named, shelf
from carrel.actions.rules import Rules, rules_of
from carrel.core import overlay
from carrel.core.access import Actor, KeyKind, Role
from carrel.core.agent import of_template
from carrel.core.classes import FileClass
from carrel.core.compose import Layers, offered
from carrel.core.edit import Edit, no_room
from carrel.core.errors import Busy, Forbidden, Malformed, Missing, Refusal, Taken
from carrel.core.lineage import stack_of
from carrel.core.names import Digest, Kind, Path, Scope, Stack
from carrel.core.overlay import Pin
from carrel.core.record import Noun, Record, Shelf
from carrel.core.tree import (
    Applied,
    Blocked,
    Commit,
    Entry,
    Head,
    Outcome,
    ReceiptKey,
    Tree,
    Version,
)
from carrel.ports import Corrupt, World

_ATTEMPTS: Final = 10
_ROLL: Final = "roll "
_AT_ONCE: Final = 1_000
"""Agents in one transaction of a bulk accept."""
_A_PAGE: Final = 5_000
"""Agents that are read at once for it."""


class Reviewed(Struct, frozen=True):
    """What became of one agent in a bulk accept."""

    agent: str
    changed: bool = False
    problem: Refusal | None = None


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
        pinned = [path for path in paths if classes.of(path) is FileClass.PINNED]
        found.append(tuple(overlay.pin_of(path, layers) for path in pinned))
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
        review = await _review(world, actor, path, receipt)
        stack = stack_of(await _agent(world, actor, name))
        layers = await world.trees.read(stack, (path,))
        decided = overlay.accept(layers, path, reviewed)
        if decided is None:
            return overlay.pin_of(path, layers)
        await review.readable(decided)
        head = await review.commit(decided, _accepting(layers, decided))
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
    review = await _review(world, actor, path)
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
        review = await _review(world, actor, path)


async def _accepted(
    review: _Review, template: str, agents: Sequence[Record], reviewed: Digest
) -> Sequence[Reviewed]:
    """What became of each; those who lost to somebody else's change are decided again."""
    results: dict[str, Reviewed] = {}
    again = agents
    for _ in range(_ATTEMPTS):
        results |= await review.accept_each(again, reviewed)
        lost = [id for id, result in results.items() if isinstance(result.problem, Busy)]
        if not lost:
            break
        review = await _review(review.world, review.actor, review.path)
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
        review = await _review(world, actor, path, receipt)
        stack = stack_of(await _agent(world, actor, name))
        layers = await world.trees.read(stack, (path,))
        earlier = await _earlier(world, layers, path, version)
        decided = overlay.roll_back(layers, path, earlier)
        await review.readable(decided)
        own = not any(earlier is tree.heads.get(path) for tree in layers[1:])
        to = f"its version {earlier.version}" if own else "what it was made with"
        why = f"{_ROLL}{path.text} back to {to}"
        why += _from_to(layers, decided)
        head = await review.commit(decided, why)
        if head is not None:
            return _after(stack, layers, path, head)
    raise Busy(f"{path} is being changed by many others")


@dataclass(frozen=True, slots=True)
class _Review:
    """A person at work on one pinned path, and what their decisions rest on."""

    world: World
    actor: Actor
    path: Path
    rules: Rules
    rests: Shelf
    receipt: ReceiptKey | None = None
    read: set[Digest] = field(default_factory=set)
    """What was found to be whole."""

    async def commit(self, decided: Edit, why: str) -> Head | None:
        """What the agent's entry became, None when it must be decided again."""
        [outcome] = await self.world.trees.commit([self._commit(decided, why)])
        if isinstance(outcome, Blocked):
            raise no_room(outcome)
        return outcome.heads[0] if isinstance(outcome, Applied) else None

    async def readable(self, decided: Edit) -> None:
        """Nobody is moved to bytes that cannot be had. Raises Taken."""
        if problem := await self._unreadable(decided):
            raise problem

    async def _unreadable(self, decided: Edit) -> Refusal | None:
        assert decided.write.entry
        blob = decided.write.entry.blob
        if blob.digest not in self.read:
            try:
                await self.world.blobs.get([blob])
            except Corrupt as problem:
                return Taken(f"{self.path}: {problem}")
            self.read.add(blob.digest)
        return None

    async def accept_each(
        self, agents: Sequence[Record], reviewed: Digest
    ) -> Mapping[str, Reviewed]:
        stacks = {agent.id: stack_of(agent) for agent in agents}
        scopes = tuple(dict.fromkeys(scope for stack in stacks.values() for scope in stack))
        read = await self.world.trees.read(scopes, (self.path,))
        trees = dict(zip(scopes, read, strict=True))
        results: dict[str, Reviewed] = {}
        commits: dict[str, Commit] = {}
        for id, stack in stacks.items():
            layers = [trees[scope] for scope in stack]
            try:
                decided = overlay.accept(layers, self.path, reviewed)
            except Refusal as refusal:
                results[id] = Reviewed(id, problem=refusal)
                continue
            results[id] = Reviewed(id)
            if decided is not None and (problem := await self._unreadable(decided)):
                results[id] = Reviewed(id, problem=problem)
            elif decided is not None:
                commits[id] = self._commit(decided, f"{_accepting(layers, decided)}, for all")
        for start in range(0, len(commits), _AT_ONCE):
            some = dict(islice(commits.items(), start, start + _AT_ONCE))
            outcomes = await self.world.trees.commit(list(some.values()))
            for id, outcome in zip(some, outcomes, strict=True):
                problem = _problem(outcome)
                results[id] = Reviewed(id, changed=problem is None, problem=problem)
        return results

    def _commit(self, decided: Edit, why: str) -> Commit:
        return Commit(
            (decided.write,),
            self.actor.name,
            why,
            self.world.clock.now(),
            expects=decided.expects,
            shelves=(*self.rules.shelves, self.rests),
            rooms=decided.rooms,
            keep=self.rules.policy.limits_of(decided.write.scope).max_versions,
            about=(f"{Noun.AGENT}/{decided.write.scope.name}",),
            receipt=self.receipt,
        )


async def _review(
    world: World, actor: Actor, path: Path, receipt: ReceiptKey | None = None
) -> _Review:
    """Raises Forbidden, or Malformed for a path that needs no review."""
    if actor.kind is not KeyKind.PERSON or actor.role not in {Role.OWNER, Role.ADMIN}:
        raise Forbidden("only a person who is owner or admin may review a pinned file")
    rests = await shelf(world, actor.tenant, Noun.AGENT)
    rules = await rules_of(world, actor.tenant)
    if rules.policy.classes.of(path) is not FileClass.PINNED:
        raise Malformed(f"{path} is not pinned: it needs no review")
    return _Review(world, actor, path, rules, rests, receipt)


def _problem(outcome: Outcome) -> Refusal | None:
    """Why one of many was not done; Busy where it may be tried again."""
    if isinstance(outcome, Applied):
        return None
    lost = Busy("it was being changed at the same time")
    return no_room(outcome) if isinstance(outcome, Blocked) else lost


def _accepting(layers: Layers, decided: Edit) -> str:
    return f"accept {decided.write.path.text}{_from_to(layers, decided)}"


def _from_to(layers: Layers, decided: Edit) -> str:
    """What was reviewed before and what is now, for the history and the audit."""
    write, was = decided.write, overlay.held_entry(decided.write.path, layers)
    assert write.entry and write.entry.base
    before = was.base.digest if was and was.base else "nothing"
    return f", from {before} to {write.entry.base.digest}"


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
    return overlay.pin_of(path, (own, *layers[1:]))


async def _earlier(world: World, layers: Layers, path: Path, version: int | None) -> Head:
    """The version that is asked for, or the newest that was reviewed to be something else.

    Where history has been pruned nobody knows what came before, and nothing is guessed.
    """
    if version is not None:
        [found] = await world.trees.versions([(layers[0].scope, path, version)])
        if found is None:
            raise Missing(f"there is no version {version} of {path}")
        return found.head
    entry = overlay.held_entry(path, layers)
    lines = await world.trees.history(layers[0].scope, path)
    heads = [line.head for n, line in enumerate(lines) if line.head.version == _newest(lines) - n]
    if not heads or heads[-1].version == 1:
        heads += [head for tree in layers[1:] if (head := _first_pin(tree, path))]
    if lines and lines[0].why.startswith(_ROLL):
        heads = _before_it_was_first(heads, entry)
    for head in heads:
        said = head.entry
        if said and said.base and (entry is None or said.base != entry.base):
            return head
    raise Missing(f"{path} was never reviewed to be anything else")


def _newest(lines: Sequence[Version]) -> int:
    return lines[0].head.version


def _before_it_was_first(heads: Sequence[Head], entry: Entry | None) -> list[Head]:
    """Older than the first review of what is there: who goes back again goes further back."""
    places = [n for n, head in enumerate(heads) if head.entry and entry == head.entry]
    return list(heads[max(places, default=-1) + 1 :])


def _first_pin(tree: Tree, path: Path) -> Head | None:
    """What the agent was made with."""
    return tree.heads.get(path) if tree.scope.kind is Kind.PINS else None
