"""Dreams: promote an agent's memories into MEMORY.md, optionally after a review."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.memory import memory_files
from carrel.actions.memory.dream_commit import (
    close_proposal,
    dream_record_change,
    expired_dream_changes,
    plan_promotion,
    schedule_change,
)
from carrel.actions.memory.dream_inputs import (
    DreamInputs,
    decide_promotions,
    load_dream_inputs,
    load_dream_memories,
)
from carrel.actions.memory.memory_files import load_writable_scope
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import FileDrafts, get_record
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_config
from carrel.core.agents.private_access import PrivateResource
from carrel.core.errors import Conflict, NotFound, WorkspaceConflict
from carrel.core.files.diff import unified_diff
from carrel.core.identifiers import Scope
from carrel.core.memory.dream_records import (
    Dream,
    DreamStatus,
    dream_from_record,
    dream_header,
    dream_schedule_change,
    schedule_from_record,
)
from carrel.core.memory.memory import agent_index_key, index_memories
from carrel.core.memory.promoted_lines import MEMORY_PATH
from carrel.core.sessions.session import format_timestamp
from carrel.core.store.idempotency import IdempotencyKey, key_with_result
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

PROMOTED_RECALL_RETENTION_MS: Final = 30 * 86_400_000
"""Retention of recalls of promoted memories, which no longer affect decisions."""
RECALL_RETENTION_MS: Final = 365 * 86_400_000
"""Retention of all other recalls."""


@dataclass(frozen=True, slots=True)
class DreamReport:
    dream: Dream
    contents: Mapping[str, str]
    """Texts of the mentioned memories that still exist, by id."""
    diff: str = ""
    """Change of MEMORY.md that the dream made or would make."""
    dry_run: bool = False


async def sweep(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    dry_run: bool = False,
    force: bool = False,
    idempotency_key: IdempotencyKey | None = None,
) -> DreamReport:
    """Promote often recalled memories in one commit, or only report them (dry run).

    If the agent's config requires a review, the promotions are stored as a proposal. Raises
    NotFound, Forbidden, WorkspaceTooLarge, Busy, and Conflict if MEMORY.md is not text or, without
    `force`, if a scheduled agent dreamed within its interval.
    """
    scope = await load_writable_scope(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    if not (dry_run or force):
        await _require_interval(ports, scope)
    id = "" if dry_run else ports.clock.new_id("drm")
    key = key_with_result(idempotency_key, id) if id else None
    report, inputs = await _commit_sweep(ports, actor.name, scope, id, key)
    if not dry_run:
        await _prune(ports, scope, inputs, report.dream)
    return report


async def _require_interval(ports: Ports, scope: Scope) -> None:
    """Raise Conflict if the agent's dreams are scheduled and the last is too recent."""
    agent = await get_record(ports, scope.tenant, RecordType.AGENT, scope.name)
    settings = agent_config(agent).dreaming
    [schedule] = await ports.records.get(scope.tenant, RecordType.DREAM, [scope.name])
    next_dream = schedule_from_record(schedule).next_by_hand(settings.interval_secs)
    if settings.enabled and next_dream > ports.clock.now():
        raise Conflict(
            "this agent dreamed within its interval; wait, or send force",
            nextDreamAt=format_timestamp(next_dream),
        )


@retry_on_conflict()
async def _commit_sweep(
    ports: Ports, author: str, scope: Scope, id: str, idempotency_key: IdempotencyKey | None
) -> tuple[DreamReport, DreamInputs]:
    """Without an id, only report what a sweep would commit."""
    rules = await load_rules(ports, scope.tenant)
    inputs = await load_dream_inputs(ports, scope, rules)
    dream, after = _build_dream(id, author, inputs, rules)
    before = inputs.files.memory
    report = DreamReport(dream, inputs.contents, _diff(before, after), not id)
    if id:
        commit_dream = (
            _commit_proposal if dream.status is DreamStatus.PROPOSED else _commit_promotions
        )
        await commit_dream(ports, rules, inputs, dream, idempotency_key)
    return report, inputs


def _build_dream(
    id: str, author: str, inputs: DreamInputs, rules: TenantRules
) -> tuple[Dream, str | None]:
    """Return the dream with all it would write, and the resulting MEMORY.md."""
    decision = decide_promotions(inputs, rules)
    after = decision.update.text if decision.update.promoted else inputs.files.memory
    if after is not None:
        after = rules.redact_text(after)
    dream = Dream(
        id,
        inputs.scope.name,
        author,
        inputs.timestamp,
        DreamStatus.PROPOSED
        if inputs.settings.review and decision.update.promoted
        else DreamStatus.DONE,
        candidates=decision.candidates,
        skipped=len(inputs.promoted),
        promoted=decision.update.promoted,
        rejected=tuple(decision.rejected),
        reasons=decision.reasons,
        evicted=tuple(line.memory for line in decision.update.evicted),
        memory_digest=inputs.files.memory_digest,
        after=after if decision.update.promoted else None,
    )
    return dream, after


def _diff(before: str | None, after: str | None) -> str:
    old, new = (None if text is None else text.encode() for text in (before, after))
    return unified_diff(old, new, MEMORY_PATH.text)


async def _commit_promotions(
    ports: Ports,
    rules: TenantRules,
    inputs: DreamInputs,
    dream: Dream,
    idempotency_key: IdempotencyKey | None,
) -> None:
    memories = await load_dream_memories(ports, inputs.scope, dream)
    new_texts, changes = plan_promotion(
        inputs.files, rules, inputs.promotion_records, dream, memories, inputs.evicted
    )
    changes += [dream_record_change(inputs.scope.tenant, dream), schedule_change(inputs, dream)]
    changes += await expired_dream_changes(ports, inputs.scope)
    drafts = await memory_files.draft_changed_files(ports, rules, inputs.files, new_texts)
    author, reason = dream.by, f"dream: {len(dream.promoted)} promoted"
    await memory_files.commit_memory_files(
        ports,
        rules,
        author,
        reason,
        drafts,
        changes,
        at=inputs.timestamp,
        idempotency_key=idempotency_key,
    )


async def _commit_proposal(
    ports: Ports,
    rules: TenantRules,
    inputs: DreamInputs,
    dream: Dream,
    idempotency_key: IdempotencyKey | None,
) -> None:
    """Store the dream for review; replaces earlier proposals."""
    changes = [dream_record_change(inputs.scope.tenant, dream), schedule_change(inputs, dream)]
    changes += [close_proposal(record, DreamStatus.SUPERSEDED) for record in inputs.proposals]
    changes += await expired_dream_changes(ports, inputs.scope)
    author, reason = dream.by, "dream: propose promotions"
    await memory_files.commit_memory_files(
        ports,
        rules,
        author,
        reason,
        FileDrafts(),
        changes,
        at=inputs.timestamp,
        idempotency_key=idempotency_key,
    )


async def _prune(ports: Ports, scope: Scope, inputs: DreamInputs, dream: Dream) -> None:
    """Delete recalls that no longer matter. Runs after the commit; safe to repeat."""
    agent_key = (scope.tenant, scope.name)
    await ports.recalls.delete(*agent_key, inputs.deleted_memory_ids)
    promoted = [*inputs.promoted, *(promotion.memory for promotion in dream.promoted)]
    await ports.recalls.delete(
        *agent_key, promoted, before=inputs.timestamp - PROMOTED_RECALL_RETENTION_MS
    )
    await ports.recalls.prune(*agent_key, inputs.timestamp - RECALL_RETENTION_MS)


async def list_dreams(ports: Ports, actor: Actor, agent: str) -> tuple[Dream, ...]:
    """List the latest dreams of an agent, newest first."""
    [scope, *_] = await stacks.agent_stack(ports, actor, agent)
    records = await ports.records.list(
        scope.tenant, RecordType.DREAM, index_key=agent_index_key(scope.name), limit=500
    )
    return tuple(dream_from_record(record) for record in reversed(records))


async def get(ports: Ports, actor: Actor, agent: str, id: str) -> DreamReport:
    """Get a dream with the texts of its memories. Raises NotFound."""
    [scope, *_] = await stacks.agent_stack(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    return await _load_report(ports, scope, await _get_record(ports, scope, id))


async def _load_report(ports: Ports, scope: Scope, record: Record) -> DreamReport:
    dream = dream_from_record(record)
    ids = [item.memory for item in dream.promoted] + [item.memory for item in dream.rejected]
    memories = (
        index_memories(await ports.records.get(scope.tenant, RecordType.MEMORY, ids)) if ids else {}
    )
    contents = {id: memory.content for id, memory in memories.items()}
    if dream.status is not DreamStatus.PROPOSED:
        return DreamReport(dream, contents)
    files = await memory_files.load_memory_files(
        ports, scope.tenant, scope.name, await load_rules(ports, scope.tenant)
    )
    return DreamReport(dream, contents, _diff(files.memory, dream.after))


async def _get_record(ports: Ports, scope: Scope, id: str) -> Record:
    record = await get_record(ports, scope.tenant, RecordType.DREAM, id)
    if dream_header(record).agent != scope.name:
        raise NotFound(f"no such dream: {id}")
    return record


async def approve(
    ports: Ports, actor: Actor, agent: str, id: str, idempotency_key: IdempotencyKey | None = None
) -> DreamReport:
    """Commit a proposal exactly as reviewed.

    Raises Forbidden unless the caller is a person who is owner or admin, Conflict if it is no
    longer proposed, and WorkspaceConflict if MEMORY.md or a memory changed since; the next sweep
    then makes a new proposal.
    """
    actor.require_person_admin("approve a dream")
    [scope, *_] = await stacks.agent_stack(ports, actor, agent)
    await _commit_approval(ports, actor, scope, id, idempotency_key)
    return await _load_report(ports, scope, await _get_record(ports, scope, id))


@retry_on_conflict()
async def _commit_approval(
    ports: Ports, author: Actor, scope: Scope, id: str, idempotency_key: IdempotencyKey | None
) -> None:
    rules, timestamp = await load_rules(ports, scope.tenant), ports.clock.now()
    record = await _get_record(ports, scope, id)
    dream = _redact_promotions(_require_proposed(record), rules)
    inputs = await load_dream_inputs(ports, scope, rules)
    ids = [item.memory for item in dream.promoted]
    memories = await load_dream_memories(ports, scope, dream)
    already_promoted = set(ids) & set(inputs.promoted)
    if (
        inputs.files.memory_digest != dream.memory_digest
        or set(ids) - memories.keys()
        or already_promoted
    ):
        change = close_proposal(record, DreamStatus.SUPERSEDED)
        await memory_files.commit_memory_files(
            ports, rules, author, "supersede a dream", FileDrafts(), [change], at=timestamp
        )
        version = inputs.files.layers[0].stack_version(MEMORY_PATH)
        raise WorkspaceConflict(
            "MEMORY.md or a memory changed since the proposal; run a new sweep", version
        )
    new_texts, changes = plan_promotion(
        inputs.files, rules, inputs.promotion_records, dream, memories, inputs.evicted
    )
    changes.append(close_proposal(record, DreamStatus.DONE, author.name, timestamp))
    drafts = await memory_files.draft_changed_files(ports, rules, inputs.files, new_texts)
    reason = f"dream: {len(ids)} promoted, as reviewed"
    committed = (ports, rules, author, reason, drafts, changes)
    await memory_files.commit_memory_files(
        *committed,
        at=timestamp,
        idempotency_key=idempotency_key,
        audit_subjects=_audit_subjects(id, scope),
    )


async def reject(
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    reason: str = "",
    idempotency_key: IdempotencyKey | None = None,
) -> DreamReport:
    """Reject a proposal; its memories may be proposed again. Raises Conflict."""
    scope = await load_writable_scope(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    await _commit_rejection(ports, actor, scope, id, reason, idempotency_key)
    return await _load_report(ports, scope, await _get_record(ports, scope, id))


@retry_on_conflict()
async def _commit_rejection(
    ports: Ports,
    author: Actor,
    scope: Scope,
    id: str,
    reason: str,
    idempotency_key: IdempotencyKey | None,
) -> None:
    rules, timestamp = await load_rules(ports, scope.tenant), ports.clock.now()
    record = await _get_record(ports, scope, id)
    _require_proposed(record)
    redacted_reason = rules.redact_text(reason)
    change = close_proposal(record, DreamStatus.REJECTED, author.name, timestamp, redacted_reason)
    await memory_files.commit_memory_files(
        ports,
        rules,
        author,
        "reject a dream",
        FileDrafts(),
        [change],
        at=timestamp,
        idempotency_key=idempotency_key,
        audit_subjects=_audit_subjects(id, scope),
    )


def _audit_subjects(id: str, scope: Scope) -> tuple[str, ...]:
    """Subjects of the audit of an answer to a proposal."""
    return (f"{RecordType.DREAM}/{id}", f"{RecordType.AGENT}/{scope.name}")


def _redact_promotions(dream: Dream, rules: TenantRules) -> Dream:
    """Redact the proposed lines with the current rules."""
    lines = tuple(
        replace(promotion, line=rules.redact_text(promotion.line)) for promotion in dream.promoted
    )
    return replace(dream, promoted=lines)


def _require_proposed(record: Record) -> Dream:
    dream = dream_from_record(record)
    if dream.status is not DreamStatus.PROPOSED:
        raise Conflict(f"the dream is {dream.status}", status=dream.status)
    return dream


async def record_failure(ports: Ports, tenant: str, agent: str) -> None:
    """Record a failed dream, which delays the next attempt."""
    [existing] = await ports.records.get(tenant, RecordType.DREAM, [agent])
    schedule, timestamp = schedule_from_record(existing), ports.clock.now()
    updated = replace(schedule, tried=timestamp, failures=schedule.failures + 1)
    rules = await load_rules(ports, tenant)
    change = dream_schedule_change(tenant, agent, updated, existing)
    await memory_files.commit_memory_files(
        ports, rules, "carrel", "a dream failed", FileDrafts(), [change], at=timestamp
    )
