"""Ports of a dry run: reads see its changes, and nothing reaches the store."""

from __future__ import annotations

from dataclasses import replace

from carrel.actions.dry_runs.pending_blobs import PendingBlobs
from carrel.actions.dry_runs.pending_changes import PendingChanges
from carrel.actions.dry_runs.pending_records import PendingRecords
from carrel.actions.dry_runs.pending_trees import PendingTrees
from carrel.core.revision_cache import RevisionCache
from carrel.ports import Ports


def dry_run_ports(ports: Ports, changes: PendingChanges) -> Ports:
    """Return ports whose commits go to `changes`.

    For actions that change files and records only by commits; others would reach the store.
    """
    records = PendingRecords(ports.records, changes)
    return replace(
        ports,
        trees=PendingTrees(ports.trees, records, changes),
        blobs=PendingBlobs(ports.blobs, changes),
        records=records,
        store=object(),
        record_cache=RevisionCache(),
    )
