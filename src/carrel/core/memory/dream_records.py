"""Records of dreams: promotions, results of each dream, and the schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.memory.memory import agent_index_key
from carrel.core.memory.promoted_lines import PromotedLine, Promotion
from carrel.core.memory.promotion_score import RejectedCandidate
from carrel.core.store.event import DREAM_ANSWERED, DREAM_PROPOSED, EventDraft
from carrel.core.store.record import (
    Record,
    RecordChange,
    RecordType,
    decode_body,
    encode_body,
)

MAX_DREAMS: Final = 50
"""Dreams kept per agent; the oldest are deleted."""
MAX_STORED_REJECTIONS: Final = 200
"""Rejected candidates stored with a dream, best first; all are counted by reason."""
PROPOSALS_INDEX_KEY: Final = "proposed"
"""Index key of all dreams of a tenant that await review."""
_MAX_RETRY_SECONDS: Final = 7 * 86_400
"""Maximum delay between failed attempts, unless the interval is longer."""


class DreamStatus(StrEnum):
    DONE = "done"
    PROPOSED = "proposed"
    """Awaits review."""
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
    """MEMORY.md changed since, so the proposal can no longer be applied."""


class Dream(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Result of one sweep. Contains memory content only in a proposal."""

    id: str
    agent: str
    by: str
    started: TimestampMs
    status: DreamStatus = DreamStatus.DONE
    candidates: int = 0
    skipped: int = 0
    """Recalled memories that were promoted before."""
    promoted: tuple[Promotion, ...] = ()
    """With their lines only in a proposal."""
    rejected: tuple[RejectedCandidate, ...] = ()
    reasons: Mapping[str, int] = {}
    evicted: tuple[str, ...] = ()
    """Memories whose lines were evicted."""
    memory_digest: Digest | None = None
    """Digest of MEMORY.md when it was proposed; None if absent."""
    after: str | None = None
    """Proposed text of MEMORY.md."""
    answered: TimestampMs | None = None
    answered_by: str | None = None
    reason: str = ""


class DreamHeader(Struct, frozen=True):
    """Agent and status of a dream, decoded without its candidates."""

    agent: str | None = None
    """None in a schedule, which is stored among the dreams."""
    status: DreamStatus = DreamStatus.DONE


def dream_events(changes: Sequence[RecordChange]) -> tuple[EventDraft, ...]:
    """Events of proposals that these changes make or close."""
    return tuple(
        event
        for change in changes
        if change.type is RecordType.DREAM
        for event in _events_of(change)
    )


def _events_of(change: RecordChange) -> Iterator[EventDraft]:
    dream = msgspec.convert(change.body or {}, DreamHeader)
    if dream.agent is None:
        return
    payload = {"dreamId": change.id, "agentId": dream.agent, "status": str(dream.status)}
    if dream.status is DreamStatus.PROPOSED:
        yield EventDraft(change.tenant, DREAM_PROPOSED, payload)
    elif change.expected:
        yield EventDraft(change.tenant, DREAM_ANSWERED, payload)


class PromotionRecord(Promotion, frozen=True, rename="camel"):
    """Promotion as stored, with the agent and the place of its line in MEMORY.md."""

    agent_id: str
    heading: str
    at: TimestampMs
    evicted_at: TimestampMs | None = None
    """When its line made room for stronger ones, if it did."""


class DreamSchedule(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Last dream of an agent and failures since."""

    last: TimestampMs | None = None
    """Time of the last successful dream."""
    dream: str = ""
    tried: TimestampMs | None = None
    failures: int = 0
    """Consecutive failures."""

    def next_by_hand(self, interval_secs: int) -> TimestampMs:
        """Time from which a person may start a dream: one interval after the last."""
        return 0 if self.last is None else self.last + 1000 * interval_secs

    def next_due(self, interval_secs: int) -> TimestampMs:
        """Time of the next dream: the interval, doubled with each failure."""
        latest = max(self.last or 0, self.tried or 0)
        if not latest:
            return 0
        max_wait = max(interval_secs, _MAX_RETRY_SECONDS)
        wait: int = interval_secs * 2 ** min(self.failures, 10)
        return latest + 1000 * min(max_wait, wait)


def promoted_index_key(agent: str) -> str:
    """Index key of promotions whose lines are in MEMORY.md."""
    return f"standing:{agent}"


def proposed_index_key(agent: str) -> str:
    """Index key of the agent's dream that awaits review."""
    return f"proposed:{agent}"


def dream_from_record(record: Record) -> Dream:
    return msgspec.convert({"id": record.id, **record.body}, Dream)


def dream_header(record: Record) -> DreamHeader:
    return decode_body(record, DreamHeader)


def dream_change(tenant: str, dream: Dream, expected: int) -> RecordChange:
    body = msgspec.to_builtins(dream)
    del body["id"]
    index_keys: tuple[str, ...] = (agent_index_key(dream.agent),)
    if dream.status is DreamStatus.PROPOSED:
        index_keys += (proposed_index_key(dream.agent), PROPOSALS_INDEX_KEY)
    return RecordChange(tenant, RecordType.DREAM, dream.id, body, expected, index_keys=index_keys)


def schedule_from_record(record: Record | None) -> DreamSchedule:
    return DreamSchedule() if record is None else decode_body(record, DreamSchedule)


def dream_schedule_change(
    tenant: str, agent: str, schedule: DreamSchedule, record: Record | None
) -> RecordChange:
    """Stored under the agent's id, which differs from any dream id."""
    body = encode_body(schedule)
    return RecordChange(tenant, RecordType.DREAM, agent, body, record.revision if record else 0)


def promotion_change(
    tenant: str, agent: str, promotion: Promotion, line: PromotedLine, evicted: Record | None = None
) -> RecordChange:
    """Record that a memory was promoted. A concurrent second promotion is refused.

    `evicted` is its earlier promotion, if that was evicted.
    """
    promoted = PromotionRecord(
        **asdict(promotion), agent_id=agent, heading=line.heading, at=line.at
    )
    return promotion_record_change(tenant, promoted, evicted.revision if evicted else 0)


def promotion_record_change(
    tenant: str, promotion: PromotionRecord, expected: int = 0
) -> RecordChange:
    """Record change of a promotion whose line is in MEMORY.md."""
    agent = promotion.agent_id
    return RecordChange(
        tenant,
        RecordType.PROMOTION,
        promotion.memory,
        encode_body(promotion),
        expected,
        index_keys=(agent_index_key(agent), promoted_index_key(agent)),
    )


def demotion_change(record: Record) -> RecordChange:
    """Remove the index key of a promotion whose line is gone; the record stays."""
    index_keys = (agent_index_key(promotion_from_record(record).agent_id),)
    return RecordChange(
        record.tenant, record.type, record.id, record.body, record.revision, index_keys=index_keys
    )


def eviction_change(record: Record, at: TimestampMs) -> RecordChange:
    """Record that the line of a promotion was evicted; recalls since then count again."""
    evicted = replace(promotion_from_record(record), evicted_at=at)
    return replace(demotion_change(record), body=encode_body(evicted, record))


def promotion_from_record(record: Record) -> PromotionRecord:
    return decode_body(record, PromotionRecord)


def redact_promotion(record: Record, redact: Callable[[str], str]) -> Record:
    """Promotion record with secrets redacted from its line."""
    promotion = promotion_from_record(record)
    redacted = replace(promotion, line=redact(promotion.line))
    return replace(record, body=encode_body(redacted, record))


def promoted_line_from_record(record: Record) -> PromotedLine:
    promotion = promotion_from_record(record)
    return PromotedLine(record.id, promotion.heading, promotion.line, promotion.at, promotion.score)
