"""Snapshots: a vector of revisions reads the same after any later write."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies_trees import SCOPES, entries, paths

from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.compose import compose, layers_etag
from carrel.core.runs import Snapshot, SnapshotLayer
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree

History = list[tuple[Scope, Head]]

writes = st.lists(st.tuples(st.sampled_from(SCOPES), paths, st.none() | entries), max_size=20)


def build_history(written: list[tuple[Scope, Path, Entry | None]]) -> History:
    """A log in which every write is its own commit."""
    history: History = []
    for scope, path, entry in written:
        mine = [head for owner, head in history if owner == scope]
        version = sum(head.path == path for head in mine) + 1
        history.append((scope, Head(path, version, len(mine) + 1, 0, entry)))
    return history


def latest_snapshot(history: History) -> Snapshot:
    counts: Mapping[Scope, int] = {scope: 0 for scope in SCOPES}
    latest = {**counts, **{scope: head.revision for scope, head in history}}
    return tuple(SnapshotLayer(scope, latest[scope]) for scope in SCOPES)


def read_layers(history: History, snapshot: Snapshot) -> list[Tree]:
    """Each layer at its revision: for every path, the last head written by then."""
    return [
        Tree(
            layer.scope,
            layer.revision,
            {h.path: h for s, h in history if s == layer.scope and h.revision <= layer.revision},
        )
        for layer in snapshot
    ]


@given(writes, writes)
def test_a_snapshot_never_changes(
    before: list[tuple[Scope, Path, Entry | None]], after: list[tuple[Scope, Path, Entry | None]]
) -> None:
    history = build_history(before)
    snapshot = latest_snapshot(history)
    frozen = read_layers(history, snapshot)

    later = build_history([*before, *after])

    assert read_layers(later, snapshot) == frozen
    assert compose(read_layers(later, snapshot)) == compose(frozen)


@given(writes)
def test_equal_revisions_give_equal_trees_and_a_new_revision_a_new_etag(
    written: list[tuple[Scope, Path, Entry | None]],
) -> None:
    history = build_history(written)
    etags = [
        layers_etag(read_layers(history[:n], latest_snapshot(history[:n])))
        for n in range(len(history) + 1)
    ]

    assert len(set(etags)) == len(etags)
