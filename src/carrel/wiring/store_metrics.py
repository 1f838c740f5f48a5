"""Numbers that the parts of a process keep anyway, shown as metrics."""

from __future__ import annotations

from carrel.server.http.metrics import Metrics
from carrel.server.rest.files.response_cache import RESPONSE_CACHE
from carrel.wiring.ports import OpenStore


def watch(metrics: Metrics, opened: OpenStore) -> None:
    memo, store = opened.ports.record_cache, opened.store
    metrics.observe(
        "carrel_answers_kept_hits_total", "Answers given again.", lambda: RESPONSE_CACHE.hits
    )
    metrics.observe(
        "carrel_answers_kept_misses_total", "Answers made.", lambda: RESPONSE_CACHE.misses
    )
    metrics.observe("carrel_records_kept_hits_total", "Facts known already.", lambda: memo.hits)
    metrics.observe("carrel_records_kept_misses_total", "Facts looked up.", lambda: memo.misses)
    counts = store.counts
    metrics.observe("carrel_commits_total", "Commits applied.", lambda: counts.commits)
    metrics.observe("carrel_conflicts_total", "Commits refused.", lambda: counts.conflicts)
    metrics.observe("carrel_fsyncs_total", "Durable transactions.", lambda: counts.transactions)
    metrics.observe("carrel_queue_depth", "Commits waiting for the writer.", lambda: store.waiting)
