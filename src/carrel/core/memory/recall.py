"""Recalls: that a memory came up for a question, and what many of them come to."""

from __future__ import annotations

from msgspec import Struct

from carrel.core.identifiers import TimestampMs


class Recall(Struct, frozen=True):
    id: str
    agent: str
    memory: str
    query: str
    """What was asked, as far as it may be kept."""
    score: float
    """1 for what came first, 1/2 for what came second, and so on."""
    at: TimestampMs


class RecallStats(Struct, frozen=True):
    """All recalls of one memory."""

    memory: str
    hits: int
    relevance: float
    """The mean of their scores."""
    queries: int
    """How many different questions."""
    days: int
    """On how many different days, in UTC."""
    latest: TimestampMs
