"""Records of dreams, promotions and schedules round-trip."""

from __future__ import annotations

from msgspec.structs import asdict

from carrel.core.identifiers import Digest
from carrel.core.memory.dream_records import (
    Dream,
    DreamSchedule,
    DreamStatus,
    PromotionRecord,
    demotion_change,
    dream_change,
    dream_from_record,
    dream_schedule_change,
    promoted_line_from_record,
    promotion_change,
    promotion_from_record,
    schedule_from_record,
)
from carrel.core.memory.promoted_lines import PromotedLine, Promotion
from carrel.core.memory.promotion_score import RejectedCandidate, RejectionReason
from carrel.core.store.record import Record, RecordChange

TEA = Promotion("mem_1", 0.42, 5, 3, "- tea _(score=0.42, hits=5, days=3)_")


def stored_record(change: RecordChange, revision: int = 1) -> Record:
    assert change.body is not None
    return Record(change.tenant, change.type, change.id, revision, change.body, 1, 1)


def test_a_dream_round_trips_and_is_indexed_while_it_is_proposed() -> None:
    rejected = (RejectedCandidate("mem_2", 0.1, RejectionReason.TOO_FEW_RECALLS, "too seldom"),)
    dream = Dream("drm_1", "agt_1", "ada", 5, DreamStatus.PROPOSED, 2, 1, (TEA,), rejected)
    waiting = dream_change("acme", dream, 0)
    assert dream_from_record(stored_record(waiting)) == dream
    assert waiting.index_keys == ("agent:agt_1", "proposed:agt_1", "proposed")
    done = Dream("drm_1", "agt_1", "ada", 5, memory_digest=Digest("sha256:x"), after="x")
    assert dream_change("acme", done, 1).index_keys == ("agent:agt_1",)
    assert dream_from_record(stored_record(dream_change("acme", done, 1))) == done


def test_a_promotion_is_created_once_and_indexed_until_its_demotion() -> None:
    promoted = PromotedLine("mem_1", "## Dreamed x", TEA.line, 7, TEA.score)
    change = promotion_change("acme", "agt_1", TEA, promoted)
    assert (change.expected, change.index_keys) == (0, ("agent:agt_1", "standing:agt_1"))
    record = stored_record(change)
    expected = PromotionRecord(**asdict(TEA), agent_id="agt_1", heading="## Dreamed x", at=7)
    assert promotion_from_record(record) == expected
    assert promoted_line_from_record(record) == promoted
    demotion = demotion_change(record)
    assert (demotion.index_keys, demotion.body, demotion.expected) == (
        ("agent:agt_1",),
        record.body,
        1,
    )


def test_a_dream_schedule_round_trips() -> None:
    schedule = DreamSchedule(last=5, dream="drm_1", tried=6, failures=2)
    change = dream_schedule_change("acme", "agt_1", schedule, None)
    assert (change.id, change.expected, change.index_keys) == ("agt_1", 0, ())
    assert schedule_from_record(stored_record(change)) == schedule
    assert dream_schedule_change("acme", "agt_1", schedule, stored_record(change, 4)).expected == 4
    assert schedule_from_record(None) == DreamSchedule()
