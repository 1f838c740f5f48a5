"""Which memories are promoted: the formula, its gates, and a reason for every other."""

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
from carrel.core.memory.recall import RecallStats
from carrel.core.runs import Audience

NOW = 1_800_000_000_000
USUAL = DreamConfig()


def candidate(
    id: str = "m1", mode: Audience = Audience.MAIN, age: float = 0, **seen: Any
) -> PromotionCandidate:
    facts = {"hits": 3, "queries": 3, "days": 1, "relevance": 1.0, **seen}
    return PromotionCandidate(
        id, f"text of {id}", mode, RecallStats(id, latest=NOW - int(age * DAY_MS), **facts)
    )


def score(one: PromotionCandidate, settings: DreamConfig = USUAL) -> float:
    return compute_signals(one.stats, NOW, settings.half_life_days).score(settings.weights)


def test_the_weights_sum_up_to_less_than_one() -> None:
    assert sum(asdict(DreamWeights()).values()) == pytest.approx(0.94)


@pytest.mark.parametrize(
    ("n", "frequency"),
    [(1, 0.356), (2, 0.565), (3, 0.712), (4, 0.827), (5, 0.921), (6, 1), (99, 1)],
)
def test_frequency_grows_with_hits_and_ends_at_six(n: int, frequency: float) -> None:
    found = compute_signals(RecallStats("m", n, 1.0, 1, 1, NOW), NOW, 90).frequency
    assert found == pytest.approx(frequency, abs=0.0006)


@pytest.mark.parametrize(
    ("one", "expected"),
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
def test_scores_are_those_of_the_table(one: PromotionCandidate, expected: float) -> None:
    assert score(one) == pytest.approx(expected, abs=0.00011)


def test_a_recall_from_the_future_is_as_good_as_one_of_now() -> None:
    assert score(candidate(age=-5)) == score(candidate())


@pytest.mark.parametrize(
    ("one", "settings", "reason"),
    [
        (candidate(hits=2), {}, RejectionReason.TOO_FEW_RECALLS),
        (candidate(queries=1), {}, RejectionReason.TOO_FEW_QUERIES),
        (candidate(queries=1, days=3), {}, RejectionReason.TOO_FEW_QUERIES),
        (candidate(days=1), {"min_unique_days": 2}, RejectionReason.TOO_FEW_DAYS),
        (candidate(relevance=0.0), {"min_score": 0.5}, RejectionReason.LOW_SCORE),
        (candidate(mode=Audience.SHARED, hits=9), {}, RejectionReason.SHARED_AUDIENCE),
    ],
)
def test_each_gate_says_why(
    one: PromotionCandidate, settings: dict[str, Any], reason: RejectionReason
) -> None:
    good, [rejected] = rank_candidates([one], DreamConfig(**settings), NOW)
    assert good == []
    assert (rejected.memory, rejected.reason, rejected.score) == ("m1", reason, score(one))
    assert rejected.why


def test_gates_that_ask_for_more_than_the_signals_can_show_still_work() -> None:
    settings = DreamConfig(min_unique_queries=7, min_unique_days=6)
    good, _ = rank_candidates([candidate(hits=9, queries=7, days=6)], settings, NOW)
    assert len(good) == 1


def test_a_gate_of_nothing_lets_everything_pass() -> None:
    settings = DreamConfig(min_unique_queries=0, min_unique_days=0, min_score=0, min_recall_count=1)
    good, _ = rank_candidates([candidate(hits=1, queries=1, days=1, relevance=0)], settings, NOW)
    assert len(good) == 1


def test_the_best_is_first_and_ties_go_by_hits_then_id() -> None:
    given = [candidate("c"), candidate("b"), candidate("a", queries=5), candidate("d", hits=4)]
    good, _ = rank_candidates(given, USUAL, NOW)
    assert [one.candidate.memory for one in good] == ["a", "d", "b", "c"]


tallies = st.builds(
    RecallStats,
    memory=st.text("abc", min_size=1, max_size=3),
    hits=st.integers(1, 20),
    relevance=st.floats(0, 1),
    queries=st.integers(1, 9),
    days=st.integers(1, 9),
    latest=st.integers(NOW - 400 * DAY_MS, NOW + DAY_MS),
)


@given(st.lists(tallies, unique_by=lambda one: one.memory))
def test_every_candidate_is_promoted_or_has_its_reason_whatever_the_order(
    found: list[RecallStats],
) -> None:
    candidates = [PromotionCandidate(one.memory, one.memory, Audience.MAIN, one) for one in found]
    good, rejected = rank_candidates(candidates, USUAL, NOW)

    told = [one.candidate.memory for one in good] + [one.memory for one in rejected]
    assert sorted(told) == sorted(one.memory for one in found)
    assert all(0 <= one.score <= 0.94 for one in good)
    assert all(0 <= one.score <= 0.94 for one in rejected)
    again, others = rank_candidates(candidates[::-1], USUAL, NOW)
    assert again == good
    assert best_first(others) == best_first(rejected)
    assert sum(count_reasons(rejected).values()) == len(rejected)
