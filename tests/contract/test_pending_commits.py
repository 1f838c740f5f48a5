"""A dry run judges commits exactly as the store does, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.support.commits import NOW
from tests.support.contract_stores import STORES, Store, StoreLocation

from carrel.actions.dry_runs.pending_blobs import PendingBlobs
from carrel.actions.dry_runs.pending_changes import PendingChanges
from carrel.actions.dry_runs.pending_records import PendingRecords
from carrel.actions.dry_runs.pending_trees import PendingTrees
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.commit import (
    Applied,
    Commit,
    Expect,
    ExpectationFailed,
    ExpectPathFree,
    ExpectPathsUnchanged,
    Outcome,
    Quota,
    Write,
)
from carrel.core.store.entry import Entry, FileAttributes
from carrel.core.store.record import (
    CollectionRevision,
    RecordChange,
    RecordRevision,
    RecordType,
    unique_key,
)
from carrel.core.store.tree import Tree

_Plan = Mapping[str, Any]
EXAMPLES = {"sqlite": 60, "postgres": 15}
PATHS = [Path(text) for text in ("a", "a/b", "a/b/c", "b", "é")]
DIRECTORY = "a directory"
TEXTS = [None, "", "1", "22", "333", DIRECTORY]
KINDS = (ScopeKind.AGENT, ScopeKind.DEFAULTS)
scopes = st.integers(0, len(KINDS) - 1)
paths = st.sampled_from(PATHS)
versions = st.none() | st.integers(0, 3)
quotas = st.tuples(scopes, st.integers(0, 3), st.none() | st.integers(0, 5))


def sometimes(items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Seldom an item, so that most commits are applied."""
    nothing: st.SearchStrategy[list[Any]] = st.just([])
    return st.one_of(nothing, nothing, nothing, items.map(lambda item: [item]))


plans = st.fixed_dictionaries(
    {
        "writes": st.lists(st.tuples(scopes, paths, st.sampled_from(TEXTS)), max_size=3),
        "expects": sometimes(st.tuples(scopes, paths, versions, st.none() | st.booleans())),
        "checks": st.lists(st.tuples(paths, st.sampled_from([(0,), (0, 1), (1, 0)])), max_size=1),
        "changes": st.lists(
            st.tuples(
                st.sampled_from(["x", "y"]),
                st.booleans(),
                versions,
                st.sampled_from(["red", "blue"]),
            ),
            max_size=2,
        ),
        "collections": sometimes(st.integers(0, 2)),
        "unchanged": sometimes(st.tuples(st.integers(0, 2), paths)),
        "records": sometimes(st.tuples(st.sampled_from(["x", "y"]), st.integers(0, 2))),
    }
)


def _put(path: str, text: str | None) -> _Plan:
    """Plan of one write of a file, directory or deletion, at a path that must be free."""
    none: _Plan = dict.fromkeys(("expects", "changes", "collections", "records", "unchanged"), ())
    return {**none, "writes": [(0, Path(path), text)], "checks": [(Path(path), (0,))]}


@pytest.mark.parametrize("name", STORES)
def test_a_dry_run_has_the_outcomes_of_the_store_and_changes_nothing(
    name: str, place: StoreLocation
) -> None:
    tenants = count()
    with asyncio.Runner() as runner:
        opened = STORES[name](place)
        ports = runner.run(opened.__aenter__())
        try:

            @settings(
                max_examples=EXAMPLES.get(name, 5),
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            @given(
                before=st.lists(plans, max_size=3),
                after=st.lists(plans, max_size=8),
                quota=st.none() | quotas,
            )
            @example(
                [_put("a", DIRECTORY)], [_put("a", "1"), _put("a", None), _put("a", "1")], None
            )
            @example([], [_put("a/b", DIRECTORY), _put("a", "1"), _put("a/b/c", "1")], None)
            def compare(before: list[_Plan], after: list[_Plan], quota: Any) -> None:
                after = [{**plan, "quotas": [quota] if quota else []} for plan in after]
                runner.run(_compare(ports.store, f"tenant-{next(tenants)}", before, after))

            compare()
        finally:
            runner.run(opened.__aexit__(None, None, None))


async def _compare(store: Store, tenant: str, before: list[_Plan], after: list[_Plan]) -> None:
    for plan in before:
        await store.trees.commit(await _commits(store, tenant, [plan]))
    changes = PendingChanges()
    records = PendingRecords(store.records, changes)
    trees = PendingTrees(store.trees, records, changes)
    pending_store = _PendingStore(trees, PendingBlobs(store.blobs, changes))

    unchanged = await _state(store, tenant)
    dry = await trees.commit(await _commits(pending_store, tenant, after))
    pending = await _state_of(trees, records, tenant)
    assert await _state(store, tenant) == unchanged

    real = await store.trees.commit(await _commits(store, tenant, after))
    assert list(map(_comparable, dry)) == list(map(_comparable, real))
    assert pending == await _state(store, tenant)


class _PendingStore:
    """The ports that building a commit needs."""

    def __init__(self, trees: Any, blobs: Any) -> None:
        self.trees, self.blobs = trees, blobs


async def _commits(store: Any, tenant: str, plans: Sequence[_Plan]) -> list[Commit]:
    return [
        await _commit(store, tenant, plan) for plan in plans if plan["writes"] or plan["changes"]
    ]


async def _commit(store: Any, tenant: str, plan: _Plan) -> Commit:
    places = [Scope(tenant, kind, "x") for kind in KINDS]
    writes = {}
    for scope, path, text in plan["writes"]:
        entry = None
        if text == DIRECTORY:
            writes[scope, path] = Write(places[scope], path, None, directory=FileAttributes(0o755))
            continue
        if text is not None:
            [blob] = await store.blobs.put([text.encode()])
            entry = Entry(blob)
        writes[scope, path] = Write(places[scope], path, entry)
    changes = {}
    for id, is_kept, expected, slug in plan["changes"]:
        change = RecordChange(tenant, RecordType.TEMPLATE, id, None, expected)
        if is_kept:
            keys = (unique_key(tenant, RecordType.TEMPLATE, "slug", slug),)
            change = structs.replace(
                change, body={"slug": slug}, unique_keys=keys, index_keys=(slug,)
            )
        changes[id] = change
    return Commit(
        tuple(writes.values()),
        "ada",
        "to see",
        NOW,
        expects=tuple(
            Expect(places[s], p, version, live) for s, p, version, live in plan["expects"]
        ),
        collection_revisions=tuple(
            CollectionRevision(tenant, RecordType.TEMPLATE, n) for n in plan["collections"]
        ),
        record_revisions=tuple(
            RecordRevision(tenant, RecordType.TEMPLATE, id, n) for id, n in plan["records"]
        ),
        changes=tuple(changes.values()),
        unchanged_paths=next(
            (
                ExpectPathsUnchanged(dict.fromkeys(places, revision), path.__eq__)
                for revision, path in plan["unchanged"]
            ),
            None,
        ),
        path_checks=tuple(
            ExpectPathFree(p, tuple(places[n] for n in over)) for p, over in plan["checks"]
        ),
        quotas=tuple(Quota(places[s], files, size) for s, files, size in plan.get("quotas", ())),
    )


def _comparable(outcome: Outcome) -> Any:
    """An outcome without what stores do not promise: the revision of what never existed."""
    if isinstance(outcome, ExpectationFailed) and isinstance(outcome.expected, RecordChange):
        return (outcome.expected.id, outcome.unique_key)
    if isinstance(outcome, Applied):
        return [head if head.version else head.path for head in outcome.heads]
    return outcome


async def _state(store: Store, tenant: str) -> Any:
    return await _state_of(store.trees, store.records, tenant)


async def _state_of(trees: Any, records: Any, tenant: str) -> Any:
    places = [Scope(tenant, kind, "x") for kind in KINDS]
    listed: tuple[Tree, ...] = await trees.read(places)
    named: tuple[Tree, ...] = await trees.read(places, PATHS)
    slugs = ("red", "blue")
    keys = [unique_key(tenant, RecordType.TEMPLATE, "slug", slug) for slug in slugs]
    return (
        [
            (dict(tree.heads), dict(tree.tombstones), dict(tree.directories), tree.revision)
            for tree in listed
        ],
        [dict(tree.heads) for tree in named],
        await trees.revisions(places),
        await records.get(tenant, RecordType.TEMPLATE, ["x", "y"]),
        await records.get_by_unique_key(keys),
        [await records.list(tenant, RecordType.TEMPLATE, index_key=slug) for slug in ("", *slugs)],
        await records.list(tenant, RecordType.TEMPLATE, after="x", limit=1),
        await records.collection_revisions([(tenant, RecordType.TEMPLATE)]),
    )
