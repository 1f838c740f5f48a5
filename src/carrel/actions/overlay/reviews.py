"""A person at work on pinned files: what their decisions rest on, and what there was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from msgspec import Struct

from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import collection_revision
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, Refusal, ValidationError
from carrel.core.identifiers import Digest, Path, ScopeKind
from carrel.core.overlay import agent_files, pins
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.edit import PlannedWrite, path_occupied_error
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import stack_of
from carrel.core.store.record import CollectionRevision, Record, RecordType
from carrel.core.store.tree import (
    Applied,
    Commit,
    Entry,
    Head,
    IdempotencyKey,
    Outcome,
    PathOccupied,
    Tree,
    Version,
)
from carrel.ports import CorruptContent, Ports

ROLL: Final = "roll "
"""How the reason of a roll-back begins."""
_AT_ONCE: Final = 1_000
"""Agents in one transaction of a bulk accept."""


class BulkAcceptOutcome(Struct, frozen=True):
    """What became of one agent in a bulk accept."""

    agent: str
    changed: bool = False
    problem: Refusal | None = None


@dataclass(frozen=True, slots=True)
class PinnedFileReview:
    """A person at work on one pinned path, and what their decisions rest on."""

    ports: Ports
    actor: Actor
    path: Path
    rules: TenantRules
    rests: CollectionRevision
    receipt: IdempotencyKey | None = None
    read: set[Digest] = field(default_factory=set)
    """What was found to be whole."""

    async def commit(self, decided: PlannedWrite, reason: str) -> Head | None:
        """What the agent's entry became, None when it must be decided again."""
        [outcome] = await self.ports.trees.commit([self._commit(decided, reason)])
        if isinstance(outcome, PathOccupied):
            raise path_occupied_error(outcome)
        return outcome.heads[0] if isinstance(outcome, Applied) else None

    async def readable(self, decided: PlannedWrite) -> None:
        """Nobody is moved to bytes that cannot be had. Raises Taken."""
        if problem := await self._unreadable(decided):
            raise problem

    async def _unreadable(self, decided: PlannedWrite) -> Refusal | None:
        assert decided.write.entry
        blob = decided.write.entry.blob
        if blob.digest not in self.read:
            try:
                await self.ports.blobs.get([blob])
            except CorruptContent as problem:
                return Conflict(f"{self.path}: {problem}")
            self.read.add(blob.digest)
        return None

    async def accept_each(
        self, agents: Sequence[Record], reviewed: Digest
    ) -> Mapping[str, BulkAcceptOutcome]:
        stacks = {agent.id: stack_of(agent) for agent in agents}
        scopes = tuple(dict.fromkeys(scope for stack in stacks.values() for scope in stack))
        read = await self.ports.trees.read(scopes, (self.path,))
        trees = dict(zip(scopes, read, strict=True))
        results: dict[str, BulkAcceptOutcome] = {}
        commits: dict[str, Commit] = {}
        for id, stack in stacks.items():
            layers = [trees[scope] for scope in stack]
            try:
                decided = pins.accept(layers, self.path, reviewed)
            except Refusal as refusal:
                results[id] = BulkAcceptOutcome(id, problem=refusal)
                continue
            results[id] = BulkAcceptOutcome(id)
            if decided is not None and (problem := await self._unreadable(decided)):
                results[id] = BulkAcceptOutcome(id, problem=problem)
            elif decided is not None:
                commits[id] = self._commit(decided, f"{plan_accept(layers, decided)}, for all")
        for start in range(0, len(commits), _AT_ONCE):
            some = dict(islice(commits.items(), start, start + _AT_ONCE))
            outcomes = await self.ports.trees.commit(list(some.values()))
            for id, outcome in zip(some, outcomes, strict=True):
                problem = _problem(outcome)
                results[id] = BulkAcceptOutcome(id, changed=problem is None, problem=problem)
        return results

    def _commit(self, decided: PlannedWrite, reason: str) -> Commit:
        return Commit(
            (decided.write,),
            self.actor.name,
            reason,
            self.ports.clock.now(),
            expects=decided.expects,
            collection_revisions=(*self.rules.shelves, self.rests),
            path_checks=decided.rooms,
            max_versions=self.rules.policy.limits_of(decided.write.scope).max_versions,
            audit_subjects=(f"{RecordType.AGENT}/{decided.write.scope.name}",),
            idempotency_key=self.receipt,
        )


async def reviewer(
    ports: Ports, actor: Actor, path: Path, receipt: IdempotencyKey | None = None
) -> PinnedFileReview:
    """Raises Forbidden, or Malformed for a path that needs no review."""
    if actor.kind is not CredentialKind.PERSON or actor.role not in {Role.OWNER, Role.ADMIN}:
        raise Forbidden("only a person who is owner or admin may review a pinned file")
    rests = await collection_revision(ports, actor.tenant, RecordType.AGENT)
    rules = await load_rules(ports, actor.tenant)
    if rules.policy.classes.class_of(path) is not FileClass.PINNED:
        raise ValidationError(f"{path} is not pinned: it needs no review")
    return PinnedFileReview(ports, actor, path, rules, rests, receipt)


def _problem(outcome: Outcome) -> Refusal | None:
    """Why one of many was not done; Busy where it may be tried again."""
    if isinstance(outcome, Applied):
        return None
    lost = Busy("it was being changed at the same time")
    return path_occupied_error(outcome) if isinstance(outcome, PathOccupied) else lost


def plan_accept(layers: Layers, decided: PlannedWrite) -> str:
    return f"accept {decided.write.path.text}{from_to(layers, decided)}"


def from_to(layers: Layers, decided: PlannedWrite) -> str:
    """What was reviewed before and what is now, for the history and the audit."""
    write, was = decided.write, agent_files.held_entry(decided.write.path, layers)
    assert write.entry and write.entry.base
    before = was.base.digest if was and was.base else "nothing"
    return f", from {before} to {write.entry.base.digest}"


async def previous_reviewed_version(
    ports: Ports, layers: Layers, path: Path, version: int | None
) -> Head:
    """The version that is asked for, or the newest that was reviewed to be something else.

    Where history has been pruned nobody knows what came before, and nothing is guessed.
    """
    if version is not None:
        [found] = await ports.trees.versions([(layers[0].scope, path, version)])
        if found is None:
            raise NotFound(f"there is no version {version} of {path}")
        return found.head
    entry = agent_files.held_entry(path, layers)
    lines = await ports.trees.history(layers[0].scope, path)
    heads = [line.head for n, line in enumerate(lines) if line.head.version == _newest(lines) - n]
    if not heads or heads[-1].version == 1:
        heads += [head for tree in layers[1:] if (head := _first_pin(tree, path))]
    if lines and lines[0].why.startswith(ROLL):
        heads = _before_it_was_first(heads, entry)
    for head in heads:
        said = head.entry
        if said and said.base and (entry is None or said.base != entry.base):
            return head
    raise NotFound(f"{path} was never reviewed to be anything else")


def _newest(lines: Sequence[Version]) -> int:
    return lines[0].head.version


def _before_it_was_first(heads: Sequence[Head], entry: Entry | None) -> list[Head]:
    """Older than the first review of what is there: who goes back again goes further back."""
    places = [n for n, head in enumerate(heads) if head.entry and entry == head.entry]
    return list(heads[max(places, default=-1) + 1 :])


def _first_pin(tree: Tree, path: Path) -> Head | None:
    """What the agent was made with."""
    return tree.heads.get(path) if tree.scope.kind is ScopeKind.PINS else None
