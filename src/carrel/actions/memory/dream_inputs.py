"""Loads everything a dream (memory consolidation) is decided from.

The number of queries is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.actions.memory import memory_files
from carrel.actions.memory.memory_files import MemoryFiles
from carrel.actions.overlay.agent_layers import load_agent_layers
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import iter_records
from carrel.core.agents.agent import agent_config
from carrel.core.agents.config import DreamConfig
from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.memory.dream_records import (
    Dream,
    promoted_index_key,
    promoted_line_from_record,
    promotion_from_record,
    proposed_index_key,
    redact_promotion,
)
from carrel.core.memory.memory import memory_from_record
from carrel.core.memory.promoted_lines import MemoryFileUpdate, find_missing, write_promotions
from carrel.core.memory.promotion_score import (
    MAX_CANDIDATES,
    MIN_RECALL_SCORE,
    PromotionCandidate,
    RejectedCandidate,
    best_first,
    count_reasons,
    rank_candidates,
)
from carrel.core.memory.recall_records import RecallStats
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_BATCH_SIZE: Final = 1000
"""Records per query, so that no query blocks a synchronous store for long."""


@dataclass(frozen=True, slots=True)
class DreamInputs:
    scope: Scope
    timestamp: TimestampMs
    settings: DreamConfig
    files: MemoryFiles
    recall_stats: Sequence[RecallStats]
    memories: Mapping[str, Record]
    """Existing memories that were recalled."""
    promoted: Sequence[str]
    """Ids of recalled memories that were promoted before."""
    evicted: Mapping[str, Record]
    """Promotion records of recalled memories whose lines were evicted."""
    promotion_records: Sequence[Record]
    """Promotions with a line in MEMORY.md, according to the records."""
    proposals: Sequence[Record]
    """Proposed dreams without an answer."""
    schedule: Record | None

    @property
    def deleted_memory_ids(self) -> list[str]:
        """Ids of recalled memories that were deleted since."""
        return [stats.memory for stats in self.recall_stats if stats.memory not in self.memories]

    @property
    def contents(self) -> Mapping[str, str]:
        return {id: memory_from_record(record).content for id, record in self.memories.items()}


@dataclass(frozen=True, slots=True)
class DreamDecision:
    candidates: int
    update: MemoryFileUpdate
    rejected: Sequence[RejectedCandidate]
    reasons: Mapping[str, int]


async def load_dream_inputs(ports: Ports, scope: Scope, rules: TenantRules) -> DreamInputs:
    """Load the current inputs. Raises NotFound if the agent was deleted."""
    tenant, agent = scope.tenant, scope.name
    agent_layers = await load_agent_layers(ports, tenant, agent)
    [schedule] = await ports.records.get(tenant, RecordType.DREAM, [agent])
    files = await memory_files.load_memory_files(ports, tenant, agent, rules)
    recall_stats = await ports.recalls.stats_by_memory(
        tenant, agent, min_score=MIN_RECALL_SCORE, limit=MAX_CANDIDATES
    )
    ids = [stats.memory for stats in recall_stats]
    memories = await _load_records(ports, tenant, RecordType.MEMORY, ids)
    promotions = await _load_records(ports, tenant, RecordType.PROMOTION, ids)
    evicted = {
        id: record
        for id, record in promotions.items()
        if promotion_from_record(record).evicted_at is not None
    }
    promotion_ledger = iter_records(ports, tenant, RecordType.PROMOTION, promoted_index_key(agent))
    return DreamInputs(
        scope,
        ports.clock.now(),
        agent_config(agent_layers.agent).dreaming,
        files,
        recall_stats,
        {
            id: record
            for id, record in memories.items()
            if memory_from_record(record).agent == agent
        },
        [id for id in ids if id in promotions and id not in evicted],
        evicted,
        [redact_promotion(record, rules.redact_text) async for record in promotion_ledger],
        await ports.records.list(tenant, RecordType.DREAM, index_key=proposed_index_key(agent)),
        schedule,
    )


async def _load_records(
    ports: Ports, tenant: str, record_type: RecordType, ids: Sequence[str]
) -> Mapping[str, Record]:
    by_id: dict[str, Record] = {}
    for start in range(0, len(ids), _BATCH_SIZE):
        batch = await ports.records.get(tenant, record_type, ids[start : start + _BATCH_SIZE])
        by_id |= {record.id: record for record in batch if record}
    return by_id


async def load_dream_memories(ports: Ports, scope: Scope, dream: Dream) -> Mapping[str, Record]:
    """Load the existing memories that a dream promotes or evicts, by id."""
    ids = [*(item.memory for item in dream.promoted), *dream.evicted]
    return await _load_records(ports, scope.tenant, RecordType.MEMORY, ids)


def decide_promotions(inputs: DreamInputs, rules: TenantRules) -> DreamDecision:
    """Decide which memories to promote, with reasons for the others.

    Written text is redacted again: it may contain a secret added after it was remembered.
    """
    settings, promoted_before = inputs.settings, set(inputs.promoted)
    candidates = [
        _candidate(stats, inputs.memories[stats.memory], inputs.evicted.get(stats.memory))
        for stats in inputs.recall_stats
        if stats.memory in inputs.memories and stats.memory not in promoted_before
    ]
    accepted, rejected = rank_candidates(candidates, settings, inputs.timestamp)
    ledger = [promoted_line_from_record(record) for record in inputs.promotion_records]
    memory = None if inputs.files.memory is None else rules.redact_text(inputs.files.memory)
    missing_lines = find_missing(memory or "", ledger)
    update = write_promotions(
        memory,
        [line for line in ledger if line not in missing_lines],
        accepted,
        inputs.timestamp,
        (settings.max_promotions_per_sweep, settings.max_chars),
        rules.redact_text,
    )
    all_rejected = best_first([*rejected, *update.rejected])
    return DreamDecision(len(candidates), update, all_rejected, count_reasons(all_rejected))


def _candidate(stats: RecallStats, record: Record, evicted: Record | None) -> PromotionCandidate:
    memory = memory_from_record(record)
    evicted_at = promotion_from_record(evicted).evicted_at if evicted else None
    return PromotionCandidate(memory.id, memory.content, memory.mode, stats, evicted_at)
