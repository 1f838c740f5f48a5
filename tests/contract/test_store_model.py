"""Stateful test: after any history each store equals a model of dictionaries."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs
from tests.support.commits import NOW, assert_applied, commit, list_events, new_run, write
from tests.support.contract_stores import STORES, Ports, StoreLocation
from tests.support.store_model import Model, ModelRun, Texts, merge_layers

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.compose import compose
from carrel.core.runs import SnapshotLayer
from carrel.core.store.commit import Applied, Commit, Expect, ExpectationFailed, Outcome
from carrel.core.store.event import WORKSPACE_UPDATED
from carrel.core.store.tree import Tree

Answer = TypeVar("Answer")
Key = tuple[int, Path]

KEEP = 2
PATHS = [Path("a"), Path("a/b"), Path("é")]
KINDS = [ScopeKind.AGENT, ScopeKind.TEMPLATE, ScopeKind.DEFAULTS]
keys = st.tuples(st.integers(0, 2), st.sampled_from(PATHS))
words = st.none() | st.sampled_from(["", "one", "two", "three"])
stacks = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)
EXAMPLES = {"sqlite": 30, "postgres": 10}
"""Number of histories; fewer for a store on a server."""


@dataclass
class StoreUnderTest:
    """One open store; every history runs in its own tenant."""

    ports: Ports
    runner: asyncio.Runner
    tenants: Iterator[int] = field(default_factory=count)

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.run(work)


class HistoryMachine(RuleBasedStateMachine):
    def __init__(self, store: StoreUnderTest) -> None:
        super().__init__()
        self.ports, self.do, self.model = store.ports, store.do, Model()
        self.tenant, self.names = f"tenant-{next(store.tenants)}", count()
        self.scopes = [Scope(self.tenant, kind, "x") for kind in KINDS]

    @rule(writes=st.dictionaries(keys, words, min_size=1, max_size=4))
    def commit(self, writes: Mapping[Key, str | None]) -> None:
        [outcome] = self.do(self.ports.trees.commit([self.build_commit(writes)]))
        self.check(outcome, writes)

    @rule(batch=st.lists(st.dictionaries(keys, words, min_size=1, max_size=2), max_size=3))
    def commit_several_in_one_call(self, batch: list[Mapping[Key, str | None]]) -> None:
        outcomes = self.do(self.ports.trees.commit([self.build_commit(writes) for writes in batch]))
        for outcome, writes in zip(outcomes, batch, strict=True):
            self.check(outcome, writes)

    @rule(writes=st.dictionaries(keys, words, min_size=1, max_size=3), stale=st.booleans())
    def commit_with_expectations(self, writes: Mapping[Key, str | None], stale: bool) -> None:
        expects = [Expect(s, p, self.model.version(s, p)) for s, p in map(self.location_of, writes)]
        if stale:
            expects[-1] = structs.replace(expects[-1], version=(expects[-1].version or 0) + 1)
        [outcome] = self.do(
            self.ports.trees.commit([self.build_commit(writes, expects=tuple(expects))])
        )
        if stale:
            assert isinstance(outcome, ExpectationFailed)
            assert outcome.expected == expects[-1]
        else:
            self.check(outcome, writes)

    @rule(key=keys)
    def race(self, key: Key) -> None:
        scope, path = self.location_of(key)
        expected = Expect(scope, path, self.model.version(scope, path))
        rivals = [{key: f"rival {n}"} for n in range(3)]
        commits = [self.build_commit(writes, expects=(expected,)) for writes in rivals]

        async def commit_all() -> list[tuple[Outcome, ...]]:
            return await asyncio.gather(*[self.ports.trees.commit([item]) for item in commits])

        outcomes = [outcome for [outcome] in self.do(commit_all())]
        [(won, writes)] = [
            (outcome, writes)
            for outcome, writes in zip(outcomes, rivals, strict=True)
            if isinstance(outcome, Applied)
        ]
        self.check(won, writes)

    @rule(stack=stacks)
    def start(self, stack: list[int]) -> None:
        scopes = [self.scopes[n] for n in stack]
        layers = tuple(self.model.texts(scope) for scope in scopes)
        self.start_run(scopes, layers)

    @precondition(lambda self: self.model.runs)
    @rule(choice=st.randoms(use_true_random=False))
    def start_on_the_snapshot_of_another_run(self, choice: Any) -> None:
        frozen = self.model.runs[choice.choice(sorted(self.model.runs))]
        self.start_run(frozen.run.snapshot, frozen.layers)

    @precondition(lambda self: self.model.runs)
    @rule(choice=st.randoms(use_true_random=False))
    def release(self, choice: Any) -> None:
        frozen = self.model.runs.pop(choice.choice(sorted(self.model.runs)))
        assert self.do(
            self.ports.runs.update(structs.replace(frozen.run, snapshot_kept=False), frozen.run)
        )

    @rule()
    def collect(self) -> None:
        self.do(self.ports.upkeep.collect(NOW + 1, grace_ms=0, event_retention_ms=1000))

    @invariant()
    def written_files_are_read_and_composing_equals_merging(self) -> None:
        trees = self.do(self.ports.trees.read(self.scopes))
        expected = [self.model.texts(scope) for scope in self.scopes]
        assert [self.texts(tree) for tree in trees] == expected
        assert [tree.revision for tree in trees] == [
            self.model.revisions.get(scope, 0) for scope in self.scopes
        ]
        composed = {path: file.blob for path, file in compose(trees).files.items()}
        contents = self.do(self.ports.blobs.get(list(composed.values())))
        composed_texts = {path: contents[blob.digest].decode() for path, blob in composed.items()}
        assert composed_texts == merge_layers(expected)
        assert list(composed_texts) == sorted(composed_texts)

    @invariant()
    def a_snapshot_never_changes(self) -> None:
        for frozen in self.model.runs.values():
            trees = self.do(self.ports.trees.read(frozen.run.snapshot))
            assert tuple(self.texts(tree) for tree in trees) == frozen.layers

    def teardown(self) -> None:
        for (scope, path), written in self.model.versions.items():
            history = self.do(self.ports.trees.history(scope, path, limit=1000))
            numbers = [version.head.version for version in history]
            assert numbers == sorted(set(numbers), reverse=True)
            assert set(numbers) >= self.model.retained(scope, path, KEEP)
            for version in history:
                model_version = written[version.head.version - 1]
                assert version.head.revision == model_version.revision
                assert (version.head.entry is None) == (model_version.text is None)
        events = self.do(
            list_events(self.ports, tenant=self.tenant, types=frozenset({WORKSPACE_UPDATED}))
        )
        emitted = [(e.scope, Path(e.payload["path"]), e.payload["version"]) for e in events]
        assert emitted == self.model.log

    def location_of(self, key: Key) -> tuple[Scope, Path]:
        return self.scopes[key[0]], key[1]

    def build_commit(self, writes: Mapping[Key, str | None], **options: Any) -> Commit:
        built = [self.do(write(self.ports, t, *self.location_of(key))) for key, t in writes.items()]
        return commit(*built, max_versions=KEEP, **options)

    def check(self, outcome: Outcome, writes: Mapping[Key, str | None]) -> None:
        """Apply the writes to the model and compare the versions."""
        expected = self.model.write({self.location_of(key): text for key, text in writes.items()})
        assert [head.version for head in assert_applied(outcome).heads] == expected

    def start_run(self, layers: Any, texts: tuple[Texts, ...]) -> None:
        id = f"run_{self.tenant}_{next(self.names)}"
        [started] = self.do(self.ports.runs.start([(new_run(id, self.scopes[0]), layers)]))
        assert all(isinstance(layer, SnapshotLayer) for layer in started.snapshot)
        self.model.runs[id] = ModelRun(started, texts)

    def texts(self, tree: Tree) -> Texts:
        assert all(head.entry for head in tree.heads.values())
        entries = {path: head.entry for path, head in tree.heads.items() if head.entry}
        contents = self.do(self.ports.blobs.get([entry.blob for entry in entries.values()]))
        return {path: contents[entry.blob.digest].decode() for path, entry in entries.items()}


@contextmanager
def open_store_under_test(name: str, place: StoreLocation) -> Iterator[StoreUnderTest]:
    opened = STORES[name](place)
    with asyncio.Runner() as runner:
        ports = runner.run(_enter(opened))
        try:
            yield StoreUnderTest(ports, runner)
        finally:
            runner.run(_exit(opened))


async def _enter(opened: Any) -> Ports:
    ports: Ports = await opened.__aenter__()
    return ports


async def _exit(opened: Any) -> None:
    await opened.__aexit__(None, None, None)


@pytest.mark.parametrize("name", STORES)
def test_any_history_equals_a_model_of_dictionaries(name: str, place: StoreLocation) -> None:
    # The same histories every time, so that a failure is always caused by a change.
    fixed_settings = settings(
        max_examples=EXAMPLES[name],
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    with open_store_under_test(name, place) as store:
        run_state_machine_as_test(partial(HistoryMachine, store), settings=fixed_settings)  # type: ignore[arg-type]  # a factory works too
