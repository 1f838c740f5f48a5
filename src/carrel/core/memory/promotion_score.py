"""Dreaming: which of an agent's memories have come up so often that they belong into MEMORY.md.

A pure decision: what was recalled gives signals, the signals a score, the gates say yes or no, and
whatever is not promoted has its reason. The same recalls at the same moment decide the same.
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
from carrel.core.memory.recall import RecallStats
from carrel.core.runs import Audience

DAY: Final = 86_400_000
MOST_CONSIDERED: Final = 10_000
"""Memories that one sweep looks at: those that came up most."""
ENOUGH: Final = 5
"""Different questions, or days, beyond which more add nothing."""
_DIGITS: Final = 9
"""Of a score: stores may sum up in another order, and the last digits of a float with it."""


class RejectionReason(StrEnum):
    """Why a memory is not promoted."""

    SHARED = "shared"
    HITS = "hits"
    QUERIES = "queries"
    DAYS = "days"
    SCORE = "score"
    SAID = "said"
    LIMIT = "limit"
    ROOM = "room"


class PromotionCandidate(Struct, frozen=True):
    """A memory that came up, and how often."""

    memory: str
    content: str
    mode: Audience
    tally: RecallStats


class Signals(Struct, frozen=True):
    """Each from 0 to 1."""

    frequency: float
    relevance: float
    recency: float
    diversity: float
    consolidation: float

    def score(self, weights: DreamWeights) -> float:
        """At most the sum of the weights, which by default is 0.94."""
        sum = (
            weights.frequency * self.frequency
            + weights.relevance * self.relevance
            + weights.recency * self.recency
            + weights.diversity * self.diversity
            + weights.consolidation * self.consolidation
        )
        return round(sum, _DIGITS)


class Ranking(Struct, frozen=True):
    candidate: PromotionCandidate
    score: float


class RejectedCandidate(Struct, frozen=True):
    memory: str
    score: float
    reason: RejectionReason
    why: str
    """The same in words, with the numbers."""


def signals(tally: RecallStats, now: TimestampMs, half_life_days: float) -> Signals:
    age = max(0.0, (now - tally.latest) / DAY)
    return Signals(
        frequency=min(1.0, math.log(1 + tally.hits) / math.log(7)),
        relevance=min(1.0, max(0.0, tally.relevance)),
        recency=2.0 ** (-age / half_life_days) if half_life_days > 0 else 0.0,
        diversity=min(1.0, max(tally.queries, tally.days) / ENOUGH),
        consolidation=min(1.0, tally.days / ENOUGH),
    )


def weighed(
    candidates: Sequence[PromotionCandidate], settings: DreamConfig, now: TimestampMs
) -> tuple[list[Ranking], list[RejectedCandidate]]:
    """Those that pass every gate, best first, and all others with the first that they failed."""
    good: list[Ranking] = []
    rejected: list[RejectedCandidate] = []
    for one in candidates:
        score = signals(one.tally, now, settings.half_life_days).score(settings.weights)
        if failed := _failed(one, score, settings):
            rejected.append(RejectedCandidate(one.memory, score, *failed))
        else:
            good.append(Ranking(one, score))
    good.sort(key=_order)
    return good, rejected


def _order(one: Ranking) -> tuple[float, int, str]:
    return (-one.score, -one.candidate.tally.hits, one.candidate.memory)


def _failed(
    one: PromotionCandidate, score: float, settings: DreamConfig
) -> tuple[RejectionReason, str] | None:
    tally = one.tally
    if one.mode is not Audience.MAIN:
        return RejectionReason.SHARED, "it was remembered in a shared session"
    if tally.hits < settings.min_recall_count:
        return RejectionReason.HITS, _short(
            "recalled", tally.hits, settings.min_recall_count, "times"
        )
    if tally.queries < settings.min_unique_queries:
        needed = settings.min_unique_queries
        return RejectionReason.QUERIES, _short(
            "asked for by", tally.queries, needed, "different questions"
        )
    if tally.days < settings.min_unique_days:
        return RejectionReason.DAYS, _short(
            "recalled on", tally.days, settings.min_unique_days, "days"
        )
    if score < settings.min_score:
        return (
            RejectionReason.SCORE,
            f"its score is {score:.4f}, and {settings.min_score:.4f} is needed",
        )
    return None


def _short(what: str, found: int, needed: int, of: str) -> str:
    return f"{what} {found} {of}, and {needed} are needed"


def counted(rejected: Sequence[RejectedCandidate]) -> Mapping[str, int]:
    """How many for each reason."""
    found = Counter(one.reason.value for one in rejected)
    return {reason: found[reason] for reason in sorted(found)}


def best_first(rejected: Sequence[RejectedCandidate]) -> list[RejectedCandidate]:
    return sorted(rejected, key=lambda one: (-one.score, one.memory))
