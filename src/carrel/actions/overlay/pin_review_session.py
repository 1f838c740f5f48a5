"""Review of a pinned file by a person: permissions, commits and earlier versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.overlay.stack_versions import load_versioned_path
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.errors import Busy, Conflict, NotFound, Refusal, ValidationError
from carrel.core.identifiers import Digest, Path, ScopeKind, TimestampMs
from carrel.core.overlay import agent_resolution
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.file_reviews import ACCEPT_PREFIX, ROLL_BACK_PREFIX
from carrel.core.overlay.planned_writes import PlannedWrite, path_occupied_error
from carrel.core.overlay.review_events import answered_review
from carrel.core.overlay.review_records import (
    REVIEW_PREFIX,
    ReviewDecision,
    ReviewRecord,
    new_review_id,
    review_change,
)
from carrel.core.store.commit import Applied, Commit, Outcome, PathOccupied, Write
from carrel.core.store.entry import OFFERED_REMOVAL, Entry, Head, Version
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordChange, RecordType, record_revision
from carrel.core.store.tree import Tree
from carrel.ports import CorruptContent, Ports

FOR_ALL_SUFFIX: Final = ", for all"
"""Suffix of the commit reason of a bulk change."""
_BATCH_SIZE: Final = 1_000
"""Agents per transaction of a bulk change."""


class BulkOutcome(Struct, frozen=True):
    """Outcome for one agent of a bulk accept or roll back."""

    agent: str
    changed: bool = False
    problem: Refusal | None = None


Plan = Callable[[str, Layers], tuple[PlannedWrite, str] | None]
"""Plans a review of the agent with an id: the write and its reason, None without a change.

Raises a Refusal, which becomes the outcome of this agent.
"""


@dataclass(frozen=True, slots=True)
class PinReviewSession:
    """Reviewer's access to one pinned path, and the revisions their decision rests on."""

    ports: Ports
    actor: Actor
    path: Path
    rules: TenantRules
    idempotency_key: IdempotencyKey | None = None
    at: TimestampMs = 0
    """Time of every version that the review writes."""
    readable_digests: set[Digest] = field(default_factory=set)
    """Digests of contents that were read successfully."""

    async def commit(
        self, agent: Record, planned: PlannedWrite, reason: str, review: ReviewRecord
    ) -> Head | None:
        """Commit with a record of the review.

        Return the agent's new head, or None if it must be planned again.
        """
        id = new_review_id(self.at, self.ports.clock.new_id(REVIEW_PREFIX))
        recorded = replace(
            review, agent_id=agent.id, template_id=agent_from_record(agent).template_id, changed=1
        )
        change = review_change(self.actor.tenant, id, recorded)
        commit = self._build_commit(agent, planned, reason, (change,))
        [outcome] = await self.ports.trees.commit([commit])
        if isinstance(outcome, PathOccupied):
            raise path_occupied_error(outcome)
        return outcome.heads[0] if isinstance(outcome, Applied) else None

    def record(
        self, decision: ReviewDecision, reviewed: Digest | None, reason: str = ""
    ) -> ReviewRecord:
        """Build the record of this review."""
        return ReviewRecord(
            decision, self.path.text, self.at, self.actor.name, sha256=reviewed, reason=reason
        )

    async def require_readable(self, planned: PlannedWrite) -> None:
        """Raise Conflict if the content to pin cannot be read."""
        if problem := await self._check_readable(planned):
            raise problem

    async def _check_readable(self, planned: PlannedWrite) -> Refusal | None:
        if planned.write.entry is None:
            return None
        blob = planned.write.entry.blob
        if blob.digest not in self.readable_digests:
            try:
                await self.ports.blobs.get([blob])
            except CorruptContent as problem:
                return Conflict(f"{self.path}: {problem}")
            self.readable_digests.add(blob.digest)
        return None

    async def change_each(
        self, agents: Mapping[str, Record], layers_by_agent: Mapping[str, Layers], plan: Plan
    ) -> Mapping[str, BulkOutcome]:
        """Plan and commit for each agent; return an outcome for each, by id."""
        results: dict[str, BulkOutcome] = {}
        planned_writes: dict[str, tuple[PlannedWrite, str]] = {}
        for id, layers in layers_by_agent.items():
            try:
                planned = plan(id, layers)
            except Refusal as refusal:
                results[id] = BulkOutcome(id, problem=refusal)
                continue
            results[id] = BulkOutcome(id)
            if planned is not None:
                planned_writes[id] = planned
        return {**results, **await self.commit_each(agents, planned_writes)}

    async def load_layers(self, agents: Sequence[Record]) -> Mapping[str, Layers]:
        """Return the layers of each agent at the path, by id, with one read."""
        stacks = {agent.id: build_stack(agent) for agent in agents}
        scopes = tuple(dict.fromkeys(scope for stack in stacks.values() for scope in stack))
        layer_trees = await self.ports.trees.read(scopes, (self.path,))
        trees = dict(zip(scopes, layer_trees, strict=True))
        return {id: [trees[scope] for scope in stack] for id, stack in stacks.items()}

    async def commit_each(
        self,
        records: Mapping[str, Record],
        planned_writes: Mapping[str, tuple[PlannedWrite, str]],
    ) -> Mapping[str, BulkOutcome]:
        """Commit a write with its reason for each agent; return the outcomes by id."""
        results: dict[str, BulkOutcome] = {}
        commits: dict[str, Commit] = {}
        for id, (planned, reason) in planned_writes.items():
            if problem := await self._check_readable(planned):
                results[id] = BulkOutcome(id, problem=problem)
            else:
                commits[id] = self._build_commit(records[id], planned, reason)
        for start in range(0, len(commits), _BATCH_SIZE):
            batch = dict(islice(commits.items(), start, start + _BATCH_SIZE))
            outcomes = await self.ports.trees.commit(list(batch.values()))
            for id, outcome in zip(batch, outcomes, strict=True):
                problem = _refusal_from_outcome(outcome)
                results[id] = BulkOutcome(id, changed=problem is None, problem=problem)
        return results

    def _build_commit(
        self,
        agent: Record,
        planned: PlannedWrite,
        reason: str,
        changes: tuple[RecordChange, ...] = (),
    ) -> Commit:
        return Commit(
            (planned.write,),
            self.actor.name,
            reason,
            self.at,
            expects=planned.expects,
            collection_revisions=self.rules.collection_revisions,
            record_revisions=(record_revision(agent),),
            changes=changes,
            path_checks=planned.path_checks,
            max_versions=self.rules.policy.limits_of(planned.write.scope).max_versions,
            events=(answered_review(planned.write.scope, self.path, reason),),
            action="review a pinned file",
            audit_subjects=_review_subjects(planned.write),
            idempotency_key=self.idempotency_key,
            key=self.actor.key_reference,
        )


def _review_subjects(write: Write) -> tuple[str, ...]:
    agent = f"{RecordType.AGENT}/{write.scope.name}"
    return agent, f"file/{agent}/{write.path.text}"


async def start_review(
    ports: Ports, actor: Actor, path: Path, idempotency_key: IdempotencyKey | None = None
) -> PinReviewSession:
    """Start a review. Raises Forbidden, or ValidationError if the path is not pinned."""
    actor.require_person_admin("review a pinned file")
    rules = await load_rules(ports, actor.tenant)
    if rules.policy.classes.class_of(path) is not FileClass.PINNED:
        raise ValidationError(f"{path} is not pinned: it needs no review")
    return PinReviewSession(ports, actor, path, rules, idempotency_key, ports.clock.now())


def is_offered_by(kind: ScopeKind, layers: Layers, path: Path) -> bool:
    """Return whether the nearest upper layer that has the file is of this kind."""
    nearest = nearest_offer(layers, path)
    return nearest is not None and nearest.scope.kind is kind


def inherits_from(kind: ScopeKind, layers: Layers, path: Path, *, is_removal: bool) -> bool:
    """Return whether a bulk review of the template's file, or the default, concerns an agent.

    A default does not concern an agent whose template has the file, nor a removal one without pin.
    """
    if is_removal:
        entry = agent_resolution.pinned_entry(path, layers)
        if entry is None or entry.base is None:
            return False
    nearest = nearest_offer(layers, path)
    return kind is ScopeKind.TEMPLATE or nearest is None or nearest.scope.kind is kind


def nearest_offer(layers: Layers, path: Path) -> Tree | None:
    """Return the nearest upper layer that has the file."""
    upper = agent_resolution.upstream_layers(layers)
    return next((tree for tree in upper if tree.entry(path)), None)


def _refusal_from_outcome(outcome: Outcome) -> Refusal | None:
    """Return why a commit failed, None if it was applied; Busy if a retry may succeed."""
    if isinstance(outcome, Applied):
        return None
    conflict = Busy("the file was changed concurrently")
    return path_occupied_error(outcome) if isinstance(outcome, PathOccupied) else conflict


def accept_reason(layers: Layers, planned: PlannedWrite) -> str:
    return f"{ACCEPT_PREFIX}{planned.write.path.text}{describe_change(layers, planned)}"


def describe_change(layers: Layers, planned: PlannedWrite) -> str:
    """Describe the reviewed digests before and after, for history and audit."""
    before, after = agent_resolution.pinned_entry(planned.write.path, layers), planned.write.entry
    return f", from {_reviewed_digest(before)} to {_reviewed_digest(after)}"


def _reviewed_digest(entry: Entry | None) -> str:
    return entry.base.digest if entry and entry.base else OFFERED_REMOVAL


async def find_previous_review(
    ports: Ports, layers: Layers, path: Path, version: int | None
) -> Head:
    """Return the given version, or the newest that was reviewed with other content.

    Raises NotFound, also if history was pruned: an earlier version is never guessed.
    """
    if version is not None:
        stack = tuple(tree.scope for tree in layers)
        versioned = await load_versioned_path(ports, stack, path)
        return (await versioned.find(version)).row.head
    entry = agent_resolution.pinned_entry(path, layers)
    versions = await ports.trees.history(layers[0].scope, path)
    heads = [
        version_row.head
        for n, version_row in enumerate(versions)
        if version_row.head.version == _newest_version(versions) - n
    ]
    if not heads or heads[-1].version == 1:
        heads += [head for tree in layers[1:] if (head := initial_pin(tree, path))]
    if versions and versions[0].reason.startswith(ROLL_BACK_PREFIX):
        heads = _heads_older_than_current(heads, entry)
    for head in heads:
        candidate = head.entry
        if candidate and candidate.base and (entry is None or candidate.base != entry.base):
            return head
    raise NotFound(f"{path} has no earlier reviewed version")


def _newest_version(versions: Sequence[Version]) -> int:
    return versions[0].head.version


def _heads_older_than_current(heads: Sequence[Head], entry: Entry | None) -> list[Head]:
    """Return heads older than the current content: repeated roll-backs go further."""
    positions = [n for n, head in enumerate(heads) if head.entry and entry == head.entry]
    return list(heads[max(positions, default=-1) + 1 :])


def initial_pin(tree: Tree, path: Path) -> Head | None:
    """Return the pin that the agent was created with."""
    return tree.heads.get(path) if tree.scope.kind is ScopeKind.PINS else None
