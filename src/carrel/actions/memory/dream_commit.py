"""What a dream comes to: the files as they become, and the records that are kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from carrel.actions.memory import memory_files
from carrel.actions.memory.dream_inputs import DreamInputs
from carrel.actions.memory.memory_files import MemoryFiles
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.memory.dream_log import DREAMS, append_dream
from carrel.core.memory.dream_records import (
    MOST_KEPT,
    MOST_TOLD,
    Dream,
    DreamSchedule,
    DreamStatus,
    demotion_change,
    dream_change,
    dream_of,
    promotion_change,
    rest_change,
    standing_of,
)
from carrel.core.memory.memory import memory_change, memory_of, of_agent
from carrel.core.memory.promoted_lines import MEMORY, PromotedLine, Promotion, heading_of, missing
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports


def plan_promotion(
    files: MemoryFiles,
    rules: TenantRules,
    ledger: Sequence[Record],
    dream: Dream,
    memories: Mapping[str, Record],
) -> tuple[dict[Path, str], list[RecordChange]]:
    """The files as they become, and what the ledger has of it."""
    tenant, agent, at = files.own.tenant, dream.agent, dream.started
    after = dream.after if dream.after is not None else files.memory
    after = None if after is None else rules.redact_text(after)
    fallen = {one.memory for one in missing(after or "", [standing_of(one) for one in ledger])}
    fallen |= set(dream.evicted)
    stood = {
        one.memory: PromotedLine(one.memory, heading_of(at), one.line, at) for one in dream.promoted
    }
    changes = [demotion_change(record) for record in ledger if record.id in fallen]
    for one in dream.promoted:
        changes.append(promotion_change(tenant, agent, one, stood[one.memory]))
        record = memories[one.memory]
        told = replace(memory_of(record), promoted=at)
        changes.append(memory_change(tenant, told, record.revision))
    counts = (dream.candidates, dream.skipped)
    wanted = {DREAMS: append_dream(files.texts[DREAMS], at, counts, dream.promoted)}
    if after is not None:
        still = [standing_of(one) for one in ledger if one.id not in fallen]
        wanted |= {MEMORY: after}
        wanted |= memory_files.with_index(files, after, [*still, *stood.values()], at)
    return wanted, changes


def dream_record(tenant: str, dream: Dream) -> RecordChange:
    """A dream's record: whole while it is proposed, and afterwards without any memory's text."""
    told = replace(dream, rejected=dream.rejected[:MOST_TOLD])
    if dream.status is not DreamStatus.PROPOSED:
        bare = tuple(replace(one, line="") for one in dream.promoted)
        told = replace(told, promoted=bare, after=None)
    return dream_change(tenant, told, 0)


def next_schedule(inputs: DreamInputs, dream: Dream) -> RecordChange:
    rest = DreamSchedule(last=inputs.at, dream=dream.id)
    return rest_change(inputs.own.tenant, inputs.own.name, rest, inputs.schedule)


async def oldest(ports: Ports, own: Scope) -> list[RecordChange]:
    """The dreams that go, so that not too many are kept."""
    found = await ports.records.list(
        own.tenant, RecordType.DREAM, link=of_agent(own.name), limit=500
    )
    ended = [one for one in found if one.body.get("status") != DreamStatus.PROPOSED]
    gone = ended[: max(0, len(found) + 1 - MOST_KEPT)]
    return [RecordChange(one.tenant, one.type, one.id, None, one.revision) for one in gone]


def close_proposal(
    record: Record,
    status: DreamStatus,
    author: str | None = None,
    at: TimestampMs | None = None,
    reason: str = "",
) -> RecordChange:
    """A proposal that waits no more: it keeps no memory's text."""
    dream = dream_of(record)
    bare: tuple[Promotion, ...] = tuple(replace(one, line="") for one in dream.promoted)
    answered = replace(
        dream,
        status=status,
        promoted=bare,
        after=None,
        answered=at,
        answered_by=author,
        reason=reason,
    )
    return dream_change(record.tenant, answered, record.revision)
