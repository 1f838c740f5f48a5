"""Memories of an agent: remember, recall and forget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.memory import memory_files, semantic_recall
from carrel.actions.memory.memory_files import MemoryFiles, load_writable_scope
from carrel.actions.memory.recall_log import record_recalls
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import (
    FileDrafts,
    Page,
    commit_changes,
    get_record,
    iter_records,
    list_page,
    record_after,
)
from carrel.actions.retry import retry_on_conflict
from carrel.actions.search_candidates import find_memories
from carrel.core.access import Actor
from carrel.core.agents.private_access import PrivateResource
from carrel.core.errors import Conflict, Forbidden, NotFound, WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.memory.dream_log import DREAMS_PATH, log_line, remove_line
from carrel.core.memory.dream_records import (
    DreamStatus,
    PromotionRecord,
    dream_change,
    dream_from_record,
    promoted_index_key,
    promoted_line_from_record,
    promotion_from_record,
    promotion_record_change,
    proposed_index_key,
    redact_promotion,
)
from carrel.core.memory.memory import (
    Memory,
    agent_index_key,
    content_unique_key,
    flatten_line,
    memory_change,
    memory_from_record,
    new_memory,
    normalize_tags,
    parse_kind,
)
from carrel.core.memory.promoted_lines import (
    MEMORY_PATH,
    PromotedLine,
    format_line,
    remove_lines,
    replace_line,
)
from carrel.core.runs import Audience
from carrel.core.search.bm25 import rank_texts
from carrel.core.search.full_text import searched_text
from carrel.core.store.idempotency import IdempotencyKey, key_with_result
from carrel.core.store.record import Record, RecordChange, RecordFilter, RecordType, deletion
from carrel.ports import Ports

DEFAULT_RESULTS: Final = 5
"""Default number of recalled memories."""
MAX_RESULTS: Final = 50
MAX_MEMORIES: Final = 50_000
"""Maximum number of memories of one agent."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    text: str
    tags: tuple[str, ...] = ()
    kind: str | None = None
    mode: Audience = Audience.MAIN
    supersedes: str | None = None
    """Id of the memory whose place it takes."""


@dataclass(frozen=True, slots=True)
class RememberResult:
    memory: Memory
    created: bool
    """False if the same text was already remembered."""


@dataclass(frozen=True, slots=True)
class MemoryHit:
    memory: Memory
    score: float
    """Share of the query that it answers, from 0 to 1, by the rarity of the words."""


@retry_on_conflict()
async def remember(
    ports: Ports,
    actor: Actor,
    agent: str,
    new: NewMemory,
    idempotency_key: IdempotencyKey | None = None,
) -> RememberResult:
    """Store one redacted line; the same text is stored once per scope.

    A memory that it supersedes is deleted in the same commit; its line in MEMORY.md becomes that of
    the new one. Raises NotFound, Forbidden, ValidationError, WorkspaceTooLarge if there are too
    many, Busy.
    """
    scope = await load_writable_scope(ports, actor, agent)
    line, tags, kind = flatten_line(new.text), normalize_tags(new.tags), parse_kind(new.kind)
    id = ports.clock.new_id("mem")
    rules = await load_rules(ports, scope.tenant)
    content = rules.redact_text(line)
    text_key = content_unique_key(scope.tenant, scope.name, new.mode, content)
    [existing] = await ports.records.get_by_unique_key([text_key])
    if existing is not None and new.supersedes in {None, existing.id}:
        return RememberResult(memory_from_record(existing), created=False)
    await _check_quota(ports, scope.tenant, scope.name)
    redacted_tags = tuple(rules.redact_text(label) for label in tags)
    memory = new_memory(id, scope.name, content, new.mode, 0, tags=redacted_tags, kind=kind)
    if new.supersedes is not None:
        return await _supersede(ports, actor.name, scope, new.supersedes, memory, idempotency_key)
    change = memory_change(scope.tenant, memory, 0)
    try:
        committed_at = await commit_changes(
            ports,
            actor,
            "remember",
            [change],
            collection_revisions=rules.collection_revisions,
            idempotency_key=key_with_result(idempotency_key, id),
        )
    except Conflict:
        [existing] = await ports.records.get_by_unique_key([text_key])
        if existing is None:
            raise
        return RememberResult(memory_from_record(existing), created=False)
    return RememberResult(memory_from_record(record_after(change, committed_at)), created=True)


async def _supersede(
    ports: Ports,
    author: str,
    scope: Scope,
    id: str,
    memory: Memory,
    idempotency_key: IdempotencyKey | None,
) -> RememberResult:
    """Replace a memory; from a shared session only a shared one, others seem absent."""
    superseded = memory_from_record(await get_memory_record(ports, scope.tenant, scope.name, id))
    if memory.mode is Audience.SHARED and superseded.mode is not Audience.SHARED:
        raise NotFound(f"no such memory: {id}")
    text_key = content_unique_key(scope.tenant, memory.agent, memory.mode, memory.content)
    [existing] = await ports.records.get_by_unique_key([text_key])
    result_id = (existing or memory).id
    key = key_with_result(idempotency_key, result_id)
    await _delete_memory(ports, author, scope, id, key, replacement=None if existing else memory)
    await ports.recalls.delete(scope.tenant, scope.name, [id])
    stored = await get_memory_record(ports, scope.tenant, scope.name, result_id)
    return RememberResult(memory_from_record(stored), created=existing is None)


async def recall(
    ports: Ports,
    actor: Actor,
    agent: str,
    query: str,
    *,
    limit: int = DEFAULT_RESULTS,
    mode: Audience = Audience.MAIN,
) -> tuple[MemoryHit, ...]:
    """Search memories, best first, and record the recalls as input of dreams.

    Raises NotFound, and Forbidden in a shared session.
    """
    hits = await search(ports, actor, agent, query, limit=limit, mode=mode)
    await record_recalls(ports, actor.tenant, query, [(hit.memory, hit.score) for hit in hits])
    return hits


async def search(
    ports: Ports,
    actor: Actor,
    agent: str,
    query: str,
    *,
    limit: int = DEFAULT_RESULTS,
    mode: Audience = Audience.MAIN,
) -> tuple[MemoryHit, ...]:
    """Search memories, best first, without recording recalls."""
    [scope, *_] = await stacks.agent_stack(ports, actor, agent)
    if mode is not Audience.MAIN:
        raise Forbidden("memories are not available in a shared session")
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    statistics, candidates = await find_memories(ports, scope.tenant, scope.name, query)
    texts = [(record, searched_text(record.body), record.created_at) for record in candidates]
    best = rank_texts(query, texts, statistics)
    if statistics.counts and ports.semantic_index is not None:
        nearest = await semantic_recall.find_nearest_memories(
            ports, ports.semantic_index, scope, query, limit=MAX_RESULTS
        )
        best = semantic_recall.merge_hits(query, best, nearest)
    top = best[: max(0, min(limit, MAX_RESULTS))]
    return tuple(MemoryHit(memory_from_record(hit.key), hit.score) for hit in top)


async def list_memories(
    ports: Ports, actor: Actor, agent: str, *, cursor: str = "", limit: int = 100
) -> Page[Memory]:
    """List all memories of an agent."""
    [scope, *_] = await stacks.agent_stack(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    records = await list_page(
        ports,
        scope.tenant,
        RecordType.MEMORY,
        matching=RecordFilter((agent_index_key(scope.name),)),
        cursor=cursor,
        limit=limit,
    )
    memories = tuple(map(memory_from_record, records.items))
    return Page(memories, records.next, records.total)


async def get(ports: Ports, actor: Actor, agent: str, id: str) -> Memory:
    """Get a memory. Raises NotFound, also for a memory of another agent."""
    [scope, *_] = await stacks.agent_stack(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.MEMORIES, scope.name)
    return memory_from_record(await get_memory_record(ports, scope.tenant, scope.name, id))


async def forget(
    ports: Ports, actor: Actor, agent: str, id: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete a memory and its lines in MEMORY.md and DREAMS.md in one commit.

    A line that a person edited stays. Raises NotFound, Forbidden, Busy.
    """
    scope = await load_writable_scope(ports, actor, agent)
    await _delete_memory(ports, actor.name, scope, id, idempotency_key)
    await ports.recalls.delete(scope.tenant, scope.name, [id])


@retry_on_conflict()
async def _delete_memory(
    ports: Ports,
    author: str,
    scope: Scope,
    id: str,
    idempotency_key: IdempotencyKey | None,
    *,
    replacement: Memory | None = None,
) -> None:
    """Delete a memory and its line, or put another memory in its place."""
    rules, at = await load_rules(ports, scope.tenant), ports.clock.now()
    memory_record = await get_memory_record(ports, scope.tenant, scope.name, id)
    [promotion] = await ports.records.get(scope.tenant, RecordType.PROMOTION, [id])
    deleted = [item for item in (memory_record, promotion) if item]
    changes = [deletion(item) for item in deleted]
    changes += await supersede_proposals(ports, scope.tenant, scope.name, id)
    new_promotion = moved_promotion(replacement, promotion, rules) if promotion else None
    if replacement is not None:
        changes += _replacement_changes(scope.tenant, replacement, new_promotion)
    drafts = (
        await draft_without_memory(ports, rules, promotion, new_promotion, at)
        if promotion
        else FileDrafts()
    )
    reason = "forget a memory" if replacement is None else "supersede a memory"
    await memory_files.commit_memory_files(
        ports,
        rules,
        author,
        reason,
        drafts,
        changes,
        at=at,
        idempotency_key=idempotency_key,
    )


def moved_promotion(
    memory: Memory | None, promotion: Record, rules: TenantRules
) -> PromotionRecord | None:
    """Promotion of a memory that takes the line of another one."""
    current = promotion_from_record(promotion)
    if memory is None or memory.mode is not Audience.MAIN or current.evicted_at is not None:
        return None
    line = format_line(rules.redact_text(memory.content), current)
    return replace(current, memory=memory.id, line=line)


def _replacement_changes(
    tenant: str, memory: Memory, promotion: PromotionRecord | None
) -> list[RecordChange]:
    if promotion is None:
        return [memory_change(tenant, memory, 0)]
    promoted_memory = replace(memory, promoted_at=promotion.at)
    return [memory_change(tenant, promoted_memory, 0), promotion_record_change(tenant, promotion)]


async def draft_without_memory(
    ports: Ports,
    rules: TenantRules,
    promotion: Record,
    replacement: PromotionRecord | None,
    at: TimestampMs,
) -> FileDrafts:
    """Draft the memory files without the lines of a promotion, or with another's."""
    agent = promotion_from_record(promotion).agent_id
    files = await memory_files.load_memory_files(ports, promotion.tenant, agent, rules)
    ledger = iter_records(ports, promotion.tenant, RecordType.PROMOTION, promoted_index_key(agent))
    lines = [
        promoted_line_from_record(redact_promotion(item, rules.redact_text))
        async for item in ledger
    ]
    redacted = redact_promotion(promotion, rules.redact_text)
    new_texts = _texts_without_line(files, redacted, replacement, rules)
    if MEMORY_PATH in new_texts:
        others = [item for item in lines if item.memory != promotion.id]
        if replacement is not None:
            others.append(
                PromotedLine(
                    replacement.memory, replacement.heading, replacement.line, replacement.at
                )
            )
        new_texts |= memory_files.changed_index(files, new_texts[MEMORY_PATH], others, at)
    return await memory_files.draft_changed_files(ports, rules, files, new_texts)


def _texts_without_line(
    files: MemoryFiles, promotion: Record, replacement: PromotionRecord | None, rules: TenantRules
) -> dict[Path, str]:
    old, old_log = promoted_line_from_record(promotion), log_line(promotion_from_record(promotion))
    new_texts: dict[Path, str] = {}
    if files.memory is not None:
        memory = rules.redact_text(files.memory)
        new_texts[MEMORY_PATH] = (
            remove_lines(memory, [old])
            if replacement is None
            else replace_line(memory, old, replacement.line)
        )
    dream_log = files.texts[DREAMS_PATH]
    if dream_log is not None:
        text = rules.redact_text(dream_log)
        new_texts[DREAMS_PATH] = (
            remove_line(text, old_log)
            if replacement is None
            else text.replace(f"\n{old_log}\n", f"\n{log_line(replacement)}\n", 1)
        )
    return new_texts


async def supersede_proposals(
    ports: Ports, tenant: str, agent: str, memory: str
) -> list[RecordChange]:
    """Supersede proposals that quote the memory, and remove the quotes."""
    proposals = await ports.records.list(
        tenant, RecordType.DREAM, index_key=proposed_index_key(agent)
    )
    changes = []
    for record in proposals:
        dream = dream_from_record(record)
        if any(promotion.memory == memory for promotion in dream.promoted):
            superseded = replace(dream, status=DreamStatus.SUPERSEDED, after=None, promoted=())
            changes.append(dream_change(tenant, superseded, record.revision))
    return changes


async def get_memory_record(ports: Ports, tenant: str, agent: str, id: str) -> Record:
    record = await get_record(ports, tenant, RecordType.MEMORY, id)
    if memory_from_record(record).agent != agent:
        raise NotFound(f"no such memory: {id}")
    return record


async def _check_quota(ports: Ports, tenant: str, agent: str) -> None:
    [count] = await ports.records.count(tenant, RecordType.MEMORY, [agent_index_key(agent)])
    if count >= MAX_MEMORIES:
        raise WorkspaceTooLarge(
            f"an agent can have at most {MAX_MEMORIES} memories", max=MAX_MEMORIES
        )
