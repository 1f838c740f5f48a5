"""Scores memories and decides which are promoted into MEMORY.md.

Deterministic: recall statistics give signals, signals a score, and thresholds decide. Every
rejected memory has a reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from carrel.core.agents.config import DreamConfig, DreamWeights
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.recall_records import RecallStats
from carrel.core.runs import Audience

DAY_MS: Final = 86_400_000
MAX_CANDIDATES: Final = 10_000
"""Memories considered per sweep: those recalled most."""
MIN_RECALL_SCORE: Final = 0.05
"""Score from which a recall counts; one through function words alone has less."""
SATURATION_COUNT: Final = 5
"""Distinct queries or days beyond which more do not raise the score."""
_SCORE_DIGITS: Final = 9
"""Scores are rounded, since stores may sum floats in a different order."""


class RejectionReason(StrEnum):
    """Why a memory is not promoted."""

    SHARED_AUDIENCE = "shared"
    TOO_FEW_RECALLS = "hits"
    TOO_FEW_QUERIES = "queries"
    TOO_FEW_DAYS = "days"
    LOW_SCORE = "score"
    ALREADY_PRESENT = "said"
    SWEEP_LIMIT = "limit"
    FILE_FULL = "room"
    EVICTED = "evicted"
    """Its line in MEMORY.md made room for stronger ones; it may be promoted again."""


class PromotionCandidate(Struct, frozen=True):
    """A recalled memory with its statistics."""

    memory: str
    content: str
    mode: Audience
    stats: RecallStats
    evicted_at: TimestampMs | None = None
    """When its line in MEMORY.md was evicted, if it was."""


class Signals(Struct, frozen=True):
    """Signals from 0 to 1."""

    frequency: float
    relevance: float
    recency: float
    diversity: float
    consolidation: float

    def score(self, weights: DreamWeights) -> float:
        """Weighted sum of the signals; at most the sum of the weights, by default 0.94."""
        total = (
            weights.frequency * self.frequency
            + weights.relevance * self.relevance
            + weights.recency * self.recency
            + weights.diversity * self.diversity
            + weights.consolidation * self.consolidation
        )
        return round(total, _SCORE_DIGITS)


class RankedCandidate(Struct, frozen=True):
    candidate: PromotionCandidate
    score: float


class RejectedCandidate(Struct, frozen=True):
    memory: str
    score: float
    reason: RejectionReason
    why: str
    """Explanation with numbers."""


def compute_signals(stats: RecallStats, now: TimestampMs, half_life_days: float) -> Signals:
    age = max(0.0, (now - stats.latest) / DAY_MS)
    return Signals(
        frequency=min(1.0, math.log(1 + stats.hits) / math.log(7)),
        relevance=min(1.0, max(0.0, stats.relevance)),
        recency=2.0 ** (-age / half_life_days) if half_life_days > 0 else 0.0,
        diversity=min(1.0, max(stats.queries, stats.days) / SATURATION_COUNT),
        consolidation=min(1.0, stats.days / SATURATION_COUNT),
    )


def rank_candidates(
    candidates: Sequence[PromotionCandidate], settings: DreamConfig, now: TimestampMs
) -> tuple[list[RankedCandidate], list[RejectedCandidate]]:
    """Candidates that pass all thresholds, best first, and the rejected ones."""
    ranked: list[RankedCandidate] = []
    rejected: list[RejectedCandidate] = []
    for candidate in candidates:
        score = compute_signals(candidate.stats, now, settings.half_life_days).score(
            settings.weights
        )
        if rejection := _rejection(candidate, score, settings):
            rejected.append(RejectedCandidate(candidate.memory, score, *rejection))
        else:
            ranked.append(RankedCandidate(candidate, score))
    ranked.sort(key=_sort_key)
    return ranked, rejected


def _sort_key(ranked: RankedCandidate) -> tuple[float, int, str]:
    return (-ranked.score, -ranked.candidate.stats.hits, ranked.candidate.memory)


def _rejection(
    candidate: PromotionCandidate, score: float, settings: DreamConfig
) -> tuple[RejectionReason, str] | None:
    stats, evicted_at = candidate.stats, candidate.evicted_at
    if candidate.mode is not Audience.MAIN:
        return RejectionReason.SHARED_AUDIENCE, "remembered in a shared session"
    if evicted_at is not None and stats.latest <= evicted_at:
        return RejectionReason.EVICTED, "not recalled since its line made room for stronger ones"
    for reason, verb, actual, needed, unit in (
        (_HITS, "recalled", stats.hits, settings.min_recall_count, "times"),
        (_QUERIES, "recalled by", stats.queries, settings.min_unique_queries, "distinct queries"),
        (_DAYS, "recalled on", stats.days, settings.min_unique_days, "days"),
    ):
        if actual < needed:
            return reason, f"{verb} {actual} {unit}; {needed} required"
    if score < settings.min_score:
        return (
            RejectionReason.LOW_SCORE,
            f"score {score:.4f}; {settings.min_score:.4f} is required",
        )
    return None


_HITS: Final = RejectionReason.TOO_FEW_RECALLS
_QUERIES: Final = RejectionReason.TOO_FEW_QUERIES
_DAYS: Final = RejectionReason.TOO_FEW_DAYS


def count_reasons(rejected: Sequence[RejectedCandidate]) -> Mapping[str, int]:
    """Number of rejections by reason."""
    counts = Counter(candidate.reason.value for candidate in rejected)
    return {reason: counts[reason] for reason in sorted(counts)}


def best_first(rejected: Sequence[RejectedCandidate]) -> list[RejectedCandidate]:
    return sorted(rejected, key=lambda item: (-item.score, item.memory))
