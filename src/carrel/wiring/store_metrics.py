"""Numbers that the parts of a process keep anyway, shown as metrics."""

from __future__ import annotations

from carrel.server.http.metrics import Metrics
from carrel.server.rest.files.response_cache import RESPONSE_CACHE
from carrel.wiring.ports import OpenStore


def watch(metrics: Metrics, opened: OpenStore) -> None:
    memo, store = opened.ports.memo, opened.store
    metrics.watch(
        "carrel_answers_kept_hits_total", "Answers given again.", lambda: RESPONSE_CACHE.hits
    )
    metrics.watch(
        "carrel_answers_kept_misses_total", "Answers made.", lambda: RESPONSE_CACHE.misses
    )
    metrics.watch("carrel_records_kept_hits_total", "Facts known already.", lambda: memo.hits)
    metrics.watch("carrel_records_kept_misses_total", "Facts looked up.", lambda: memo.misses)
    counts = store.counts
    metrics.watch("carrel_commits_total", "Commits applied.", lambda: counts.commits)
    metrics.watch("carrel_conflicts_total", "Commits refused.", lambda: counts.conflicts)
    metrics.watch("carrel_fsyncs_total", "Durable transactions.", lambda: counts.transactions)
    metrics.watch("carrel_queue_depth", "Commits waiting for the writer.", lambda: store.waiting)
