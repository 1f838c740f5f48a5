"""Plans the commit of a dream: new file texts and record changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from carrel.actions.memory import memory_files
from carrel.actions.memory.dream_inputs import DreamInputs
from carrel.actions.memory.memory_files import MemoryFiles
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.memory.dream_log import DREAMS_PATH, append_dream
from carrel.core.memory.dream_records import (
    MAX_DREAMS,
    MAX_STORED_REJECTIONS,
    Dream,
    DreamSchedule,
    DreamStatus,
    demotion_change,
    dream_change,
    dream_from_record,
    dream_header,
    dream_schedule_change,
    eviction_change,
    promoted_line_from_record,
    promotion_change,
)
from carrel.core.memory.memory import agent_index_key, memory_change, memory_from_record
from carrel.core.memory.promoted_lines import (
    MEMORY_PATH,
    PromotedLine,
    Promotion,
    block_heading,
    find_missing,
)
from carrel.core.store.record import Record, RecordChange, RecordType, deletion
from carrel.ports import Ports


def plan_promotion(
    files: MemoryFiles,
    rules: TenantRules,
    ledger: Sequence[Record],
    dream: Dream,
    memories: Mapping[str, Record],
    evicted: Mapping[str, Record],
) -> tuple[dict[Path, str], list[RecordChange]]:
    """Return the new file texts and the changes of promotion records and memories.

    `memories` are those that are promoted and evicted now, `evicted` the promotion records of
    those that were evicted before.
    """
    tenant, agent, timestamp = files.scope.tenant, dream.agent, dream.started
    after = dream.after if dream.after is not None else files.memory
    after = None if after is None else rules.redact_text(after)
    demoted_ids = {
        item.memory
        for item in find_missing(after or "", [promoted_line_from_record(item) for item in ledger])
    }
    evicted_ids = set(dream.evicted)
    new_lines = {
        item.memory: PromotedLine(
            item.memory, block_heading(timestamp), item.line, timestamp, item.score
        )
        for item in dream.promoted
    }
    changes = [demotion_change(item) for item in ledger if item.id in demoted_ids - evicted_ids]
    changes += [eviction_change(item, timestamp) for item in ledger if item.id in evicted_ids]
    changes += [
        promotion_change(tenant, agent, item, new_lines[item.memory], evicted.get(item.memory))
        for item in dream.promoted
    ]
    changes += _memory_changes(tenant, dream, memories)
    demoted_ids |= evicted_ids
    counts = (dream.candidates, dream.skipped)
    new_texts = {
        DREAMS_PATH: append_dream(files.texts[DREAMS_PATH], timestamp, counts, dream.promoted)
    }
    if after is not None:
        kept_lines = [
            promoted_line_from_record(item) for item in ledger if item.id not in demoted_ids
        ]
        new_texts |= {MEMORY_PATH: after}
        new_texts |= memory_files.changed_index(
            files, after, [*kept_lines, *new_lines.values()], timestamp
        )
    return new_texts, changes


def _memory_changes(
    tenant: str, dream: Dream, memories: Mapping[str, Record]
) -> list[RecordChange]:
    """Set when each memory was promoted, or that it no longer is."""
    promoted_at = {
        **dict.fromkeys(dream.evicted),
        **{item.memory: dream.started for item in dream.promoted},
    }
    return [
        memory_change(
            tenant, replace(memory_from_record(memories[id]), promoted_at=at), memories[id].revision
        )
        for id, at in promoted_at.items()
        if id in memories
    ]


def dream_record_change(tenant: str, dream: Dream) -> RecordChange:
    """Record change of a new dream; memory texts are stored only while it is proposed."""
    stored = replace(dream, rejected=dream.rejected[:MAX_STORED_REJECTIONS])
    if dream.status is not DreamStatus.PROPOSED:
        without_text = tuple(replace(promotion, line="") for promotion in dream.promoted)
        stored = replace(stored, promoted=without_text, after=None)
    return dream_change(tenant, stored, 0)


def schedule_change(inputs: DreamInputs, dream: Dream) -> RecordChange:
    schedule = DreamSchedule(last=inputs.timestamp, dream=dream.id)
    return dream_schedule_change(inputs.scope.tenant, inputs.scope.name, schedule, inputs.schedule)


async def expired_dream_changes(ports: Ports, scope: Scope) -> list[RecordChange]:
    """Delete the oldest closed dreams, to stay within the limit of stored dreams."""
    dreams = await ports.records.list(
        scope.tenant, RecordType.DREAM, index_key=agent_index_key(scope.name), limit=500
    )
    ended = [dream for dream in dreams if dream_header(dream).status is not DreamStatus.PROPOSED]
    deleted = ended[: max(0, len(dreams) + 1 - MAX_DREAMS)]
    return [deletion(dream) for dream in deleted]


def close_proposal(
    record: Record,
    status: DreamStatus,
    author: str | None = None,
    at: TimestampMs | None = None,
    reason: str = "",
) -> RecordChange:
    """Close a proposal and remove the memory texts from its record."""
    dream = dream_from_record(record)
    without_text: tuple[Promotion, ...] = tuple(
        replace(promotion, line="") for promotion in dream.promoted
    )
    answered = replace(
        dream,
        status=status,
        promoted=without_text,
        after=None,
        answered=at,
        answered_by=author,
        reason=reason,
    )
    return dream_change(record.tenant, answered, record.revision)
