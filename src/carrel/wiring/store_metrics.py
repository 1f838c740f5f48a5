"""Exposes counters of the store, the caches and the command slots as metrics."""

from __future__ import annotations

from carrel.ports import CommandSlots
from carrel.server.http.metrics import Metrics
from carrel.server.http.response_cache import ResponseCache
from carrel.wiring.ports import OpenStore


def observe_store(metrics: Metrics, open_store: OpenStore, responses: ResponseCache) -> None:
    record_cache, store = open_store.ports.record_cache, open_store.store
    metrics.observe(
        "carrel_response_cache_hits_total",
        "Responses served from the cache.",
        lambda: responses.hits,
    )
    metrics.observe(
        "carrel_response_cache_misses_total",
        "Responses not in the cache.",
        lambda: responses.misses,
    )
    metrics.observe(
        "carrel_record_cache_hits_total", "Record cache hits.", lambda: record_cache.hits
    )
    metrics.observe(
        "carrel_record_cache_misses_total", "Record cache misses.", lambda: record_cache.misses
    )
    counts = store.counts
    metrics.observe("carrel_commits_total", "Commits applied.", lambda: counts.commits)
    metrics.observe(
        "carrel_conflicts_total",
        "Commits refused by a failed expectation.",
        lambda: counts.conflicts,
    )
    metrics.observe("carrel_fsyncs_total", "Durable transactions.", lambda: counts.transactions)
    metrics.observe(
        "carrel_commit_queue_depth", "Commits waiting for the writer.", lambda: store.waiting_count
    )
    _observe_commands(metrics, open_store.ports.command_slots)


def _observe_commands(metrics: Metrics, slots: CommandSlots) -> None:
    metrics.observe("carrel_commands_running", "Commands that hold a slot.", lambda: slots.running)
    metrics.observe(
        "carrel_commands_waiting", "Commands waiting for a slot.", lambda: slots.waiting_count
    )
    metrics.observe(
        "carrel_commands_started_total", "Commands that got a slot.", lambda: slots.started
    )
    metrics.observe(
        "carrel_commands_waited_seconds_total",
        "Seconds that started commands waited for a slot.",
        lambda: slots.waited_seconds,
    )
    metrics.observe(
        "carrel_commands_refused_total",
        "Commands refused because too many of their tenant waited.",
        lambda: slots.refused,
    )
