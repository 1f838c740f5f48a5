"""Recalls: search hits of memories, and their statistics."""

from __future__ import annotations

from msgspec import Struct

from carrel.core.identifiers import TimestampMs


class Recall(Struct, frozen=True):
    id: str
    agent: str
    memory: str
    query: str
    """The query, redacted."""
    score: float
    """Share of the query that the memory answers, from 0 to 1."""
    at: TimestampMs


class RecallStats(Struct, frozen=True):
    """Statistics of all recalls of one memory."""

    memory: str
    hits: int
    relevance: float
    """Mean score."""
    queries: int
    """Number of distinct queries."""
    days: int
    """Number of distinct days in UTC."""
    latest: TimestampMs
