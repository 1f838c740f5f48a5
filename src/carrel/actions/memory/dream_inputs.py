"""One night of an agent: all that a dream is decided from, in a bounded number of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.actions.memory import memory_files
from carrel.actions.memory.memory_files import MemoryFiles
from carrel.actions.overlay.agent_layers import load_agent_layers
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import iter_records
from carrel.core.agents.config import DreamConfig, config_of
from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.memory.dream_records import as_written, promoted_index, proposed, standing_of
from carrel.core.memory.memory import memory_of
from carrel.core.memory.promoted_lines import MemoryFileUpdate, missing, written
from carrel.core.memory.promotion_score import (
    MOST_CONSIDERED,
    PromotionCandidate,
    RejectedCandidate,
    best_first,
    counted,
    weighed,
)
from carrel.core.memory.recall import RecallStats
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_AT_ONCE: Final = 1000
"""Records asked for in one question, so that nobody waits long for a store that answers at once."""


@dataclass(frozen=True, slots=True)
class DreamInputs:
    own: Scope
    at: TimestampMs
    settings: DreamConfig
    files: MemoryFiles
    tallies: Sequence[RecallStats]
    memories: Mapping[str, Record]
    """Those that have come up and are there."""
    promoted: Sequence[str]
    """Those of them that were promoted before."""
    standing: Sequence[Record]
    """The promotions whose lines stand in MEMORY.md, as far as the ledger knows."""
    waiting: Sequence[Record]
    """What was proposed and is not answered yet."""
    schedule: Record | None

    @property
    def gone(self) -> list[str]:
        """What has come up and was forgotten since."""
        return [one.memory for one in self.tallies if one.memory not in self.memories]

    @property
    def contents(self) -> Mapping[str, str]:
        return {id: record.body["content"] for id, record in self.memories.items()}


@dataclass(frozen=True, slots=True)
class DreamDecision:
    candidates: int
    written: MemoryFileUpdate
    rejected: Sequence[RejectedCandidate]
    reasons: Mapping[str, int]


async def load_dream_inputs(ports: Ports, own: Scope, rules: TenantRules) -> DreamInputs:
    """Everything as it is now. Raises Missing where there is no such agent any more."""
    tenant, agent = own.tenant, own.name
    agent_layers = await load_agent_layers(ports, tenant, agent)
    [rest] = await ports.records.get(tenant, RecordType.DREAM, [agent])
    files = await memory_files.read(ports, tenant, agent, rules)
    tallies = await ports.recalls.tallies(tenant, agent, limit=MOST_CONSIDERED)
    ids = [one.memory for one in tallies]
    memories = await _records(ports, tenant, RecordType.MEMORY, ids)
    promotions = await _records(ports, tenant, RecordType.PROMOTION, ids)
    ledger = iter_records(ports, tenant, RecordType.PROMOTION, promoted_index(agent))
    return DreamInputs(
        own,
        ports.clock.now(),
        config_of(agent_layers.agent.body.get("config") or {}).dreaming,
        files,
        tallies,
        {id: record for id, record in memories.items() if record.body["agentId"] == agent},
        [id for id in ids if id in promotions],
        [as_written(record, rules.redact_text) async for record in ledger],
        await ports.records.list(tenant, RecordType.DREAM, link=proposed(agent)),
        rest,
    )


async def _records(
    ports: Ports, tenant: str, record_type: RecordType, ids: Sequence[str]
) -> Mapping[str, Record]:
    found: dict[str, Record] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = await ports.records.get(tenant, record_type, ids[start : start + _AT_ONCE])
        found |= {record.id: record for record in some if record}
    return found


def decide(inputs: DreamInputs, rules: TenantRules) -> DreamDecision:
    """What is promoted and what is not, and why.

    What is written is redacted anew: a secret may have become one since it was remembered.
    """
    settings, before = inputs.settings, set(inputs.promoted)
    candidates = [
        _candidate(tally, inputs.memories[tally.memory])
        for tally in inputs.tallies
        if tally.memory in inputs.memories and tally.memory not in before
    ]
    good, rejected = weighed(candidates, settings, inputs.at)
    ledger = [standing_of(record) for record in inputs.standing]
    memory = None if inputs.files.memory is None else rules.redact_text(inputs.files.memory)
    lost = missing(memory or "", ledger)
    made = written(
        memory,
        [one for one in ledger if one not in lost],
        good,
        inputs.at,
        (settings.max_promotions_per_sweep, settings.max_chars),
        rules.redact_text,
    )
    every = best_first([*rejected, *made.rejected])
    return DreamDecision(len(candidates), made, every, counted(every))


def _candidate(tally: RecallStats, record: Record) -> PromotionCandidate:
    memory = memory_of(record)
    return PromotionCandidate(memory.id, memory.content, memory.mode, tally)
