"""Promotion scores: the formula, its gates, and a reason for every rejection."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from carrel.core.agents.config import DreamConfig, DreamWeights
from carrel.core.memory.promotion_score import (
    DAY_MS,
    PromotionCandidate,
    RejectionReason,
    best_first,
    compute_signals,
    count_reasons,
    rank_candidates,
)
from carrel.core.memory.recall_records import RecallStats
from carrel.core.runs import Audience

NOW = 1_800_000_000_000
DEFAULT_CONFIG = DreamConfig()


def candidate(
    id: str = "m1", mode: Audience = Audience.MAIN, age: float = 0, **stats: Any
) -> PromotionCandidate:
    fields = {"hits": 3, "queries": 3, "days": 1, "relevance": 1.0, **stats}
    return PromotionCandidate(
        id, f"text of {id}", mode, RecallStats(id, latest=NOW - int(age * DAY_MS), **fields)
    )


def score(subject: PromotionCandidate, settings: DreamConfig = DEFAULT_CONFIG) -> float:
    return compute_signals(subject.stats, NOW, settings.half_life_days).score(settings.weights)


def test_the_weights_sum_to_less_than_one() -> None:
    assert sum(asdict(DreamWeights()).values()) == pytest.approx(0.94)


@pytest.mark.parametrize(
    ("n", "frequency"),
    [(1, 0.356), (2, 0.565), (3, 0.712), (4, 0.827), (5, 0.921), (6, 1), (99, 1)],
)
def test_frequency_grows_with_hits_and_saturates_at_six(n: int, frequency: float) -> None:
    signal = compute_signals(RecallStats("m", n, 1.0, 1, 1, NOW), NOW, 90).frequency
    assert signal == pytest.approx(frequency, abs=0.0006)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (candidate(), 0.7310),
        (candidate(queries=2), 0.7010),
        (candidate(queries=1), 0.6710),
        (candidate(queries=1, days=3), 0.7710),
        (candidate(relevance=0.2), 0.4910),
        (candidate(relevance=0.0), 0.4310),
        (candidate(relevance=0.0, age=90), 0.3560),
        (candidate(hits=5, queries=5, days=5), 0.9210),
        (candidate(hits=6, queries=5, days=5), 0.9400),
        (candidate(hits=1, queries=1, relevance=0.5), 0.4355),
        (candidate(queries=2, relevance=0.75), 0.6260),
    ],
)
def test_scores_match_the_table(subject: PromotionCandidate, expected: float) -> None:
    assert score(subject) == pytest.approx(expected, abs=0.00011)


def test_a_recall_in_the_future_scores_like_a_recall_now() -> None:
    assert score(candidate(age=-5)) == score(candidate())


@pytest.mark.parametrize(
    ("subject", "settings", "reason"),
    [
        (candidate(hits=2), {}, RejectionReason.TOO_FEW_RECALLS),
        (candidate(queries=1), {}, RejectionReason.TOO_FEW_QUERIES),
        (candidate(queries=1, days=3), {}, RejectionReason.TOO_FEW_QUERIES),
        (candidate(days=1), {"min_unique_days": 2}, RejectionReason.TOO_FEW_DAYS),
        (candidate(relevance=0.0), {"min_score": 0.5}, RejectionReason.LOW_SCORE),
        (candidate(mode=Audience.SHARED, hits=9), {}, RejectionReason.SHARED_AUDIENCE),
    ],
)
def test_each_gate_rejects_with_its_reason(
    subject: PromotionCandidate, settings: dict[str, Any], reason: RejectionReason
) -> None:
    promoted, [rejected] = rank_candidates([subject], DreamConfig(**settings), NOW)
    assert promoted == []
    assert (rejected.memory, rejected.reason, rejected.score) == ("m1", reason, score(subject))
    assert rejected.why


def test_gates_beyond_the_saturation_of_a_signal_still_apply() -> None:
    settings = DreamConfig(min_unique_queries=7, min_unique_days=6)
    promoted, _ = rank_candidates([candidate(hits=9, queries=7, days=6)], settings, NOW)
    assert len(promoted) == 1


def test_gates_of_zero_let_every_candidate_pass() -> None:
    settings = DreamConfig(min_unique_queries=0, min_unique_days=0, min_score=0, min_recall_count=1)
    promoted, _ = rank_candidates(
        [candidate(hits=1, queries=1, days=1, relevance=0)], settings, NOW
    )
    assert len(promoted) == 1


def test_the_best_score_is_first_and_ties_go_by_hits_then_id() -> None:
    candidates = [candidate("c"), candidate("b"), candidate("a", queries=5), candidate("d", hits=4)]
    promoted, _ = rank_candidates(candidates, DEFAULT_CONFIG, NOW)
    assert [item.candidate.memory for item in promoted] == ["a", "d", "b", "c"]


recall_stats = st.builds(
    RecallStats,
    memory=st.text("abc", min_size=1, max_size=3),
    hits=st.integers(1, 20),
    relevance=st.floats(0, 1),
    queries=st.integers(1, 9),
    days=st.integers(1, 9),
    latest=st.integers(NOW - 400 * DAY_MS, NOW + DAY_MS),
)


@given(st.lists(recall_stats, unique_by=lambda item: item.memory))
def test_every_candidate_is_promoted_or_rejected_in_any_input_order(
    all_stats: list[RecallStats],
) -> None:
    candidates = [
        PromotionCandidate(item.memory, item.memory, Audience.MAIN, item) for item in all_stats
    ]
    promoted, rejected = rank_candidates(candidates, DEFAULT_CONFIG, NOW)

    listed = [item.candidate.memory for item in promoted] + [item.memory for item in rejected]
    assert sorted(listed) == sorted(item.memory for item in all_stats)
    assert all(0 <= item.score <= 0.94 for item in promoted)
    assert all(0 <= item.score <= 0.94 for item in rejected)
    again, others = rank_candidates(candidates[::-1], DEFAULT_CONFIG, NOW)
    assert again == promoted
    assert best_first(others) == best_first(rejected)
    assert sum(count_reasons(rejected).values()) == len(rejected)
