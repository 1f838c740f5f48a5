"""Snapshots: a vector of revisions reads the same for ever, whatever is written afterwards."""

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


def told(asked: list[tuple[Scope, Path, Entry | None]]) -> History:
    """A log in which every write is a commit of its own."""
    history: History = []
    for scope, path, entry in asked:
        mine = [head for owner, head in history if owner == scope]
        version = sum(head.path == path for head in mine) + 1
        history.append((scope, Head(path, version, len(mine) + 1, 0, entry)))
    return history


def now(history: History) -> Snapshot:
    counts: Mapping[Scope, int] = {scope: 0 for scope in SCOPES}
    latest = {**counts, **{scope: head.revision for scope, head in history}}
    return tuple(SnapshotLayer(scope, latest[scope]) for scope in SCOPES)


def read(history: History, snapshot: Snapshot) -> list[Tree]:
    """Each layer as it was at its revision: of every path, the last that was said by then."""
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
    history = told(before)
    snapshot = now(history)
    frozen = read(history, snapshot)

    later = told([*before, *after])

    assert read(later, snapshot) == frozen
    assert compose(read(later, snapshot)) == compose(frozen)


@given(writes)
def test_equal_revisions_mean_equal_trees_and_a_new_one_a_new_etag(
    asked: list[tuple[Scope, Path, Entry | None]],
) -> None:
    history = told(asked)
    etags = [layers_etag(read(history[:n], now(history[:n]))) for n in range(len(history) + 1)]

    assert len(set(etags)) == len(etags)
