"""Any history at all: each store does what naive dictionaries would do."""

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
from carrel.core.store.event import WORKSPACE_UPDATED
from carrel.core.store.tree import Applied, Commit, Expect, ExpectationFailed, Outcome, Tree

Answer = TypeVar("Answer")
Key = tuple[int, Path]

KEEP = 2
PATHS = [Path("a"), Path("a/b"), Path("é")]
KINDS = [ScopeKind.AGENT, ScopeKind.TEMPLATE, ScopeKind.DEFAULTS]
keys = st.tuples(st.integers(0, 2), st.sampled_from(PATHS))
words = st.none() | st.sampled_from(["", "one", "two", "three"])
stacks = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)
EXAMPLES = {"sqlite": 60, "postgres": 20}
"""How many histories; a store on a disk is shown fewer."""


@dataclass
class Stage:
    """One open store, in which every history plays in a tenant of its own."""

    ports: Ports
    runner: asyncio.Runner
    tenants: Iterator[int] = field(default_factory=count)

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.run(work)


class Histories(RuleBasedStateMachine):
    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.ports, self.do, self.model = stage.ports, stage.do, Model()
        self.tenant, self.names = f"tenant-{next(stage.tenants)}", count()
        self.scopes = [Scope(self.tenant, kind, "x") for kind in KINDS]

    @rule(writes=st.dictionaries(keys, words, min_size=1, max_size=4))
    def commit(self, writes: Mapping[Key, str | None]) -> None:
        [outcome] = self.do(self.ports.trees.commit([self.asked(writes)]))
        self.check(outcome, writes)

    @rule(batch=st.lists(st.dictionaries(keys, words, min_size=1, max_size=2), max_size=3))
    def commit_several_in_one_call(self, batch: list[Mapping[Key, str | None]]) -> None:
        outcomes = self.do(self.ports.trees.commit([self.asked(writes) for writes in batch]))
        for outcome, writes in zip(outcomes, batch, strict=True):
            self.check(outcome, writes)

    @rule(writes=st.dictionaries(keys, words, min_size=1, max_size=3), wrong=st.booleans())
    def commit_on_what_was_seen(self, writes: Mapping[Key, str | None], wrong: bool) -> None:
        seen = [Expect(s, p, self.model.version(s, p)) for s, p in map(self.place, writes)]
        if wrong:
            seen[-1] = structs.replace(seen[-1], version=(seen[-1].version or 0) + 1)
        [outcome] = self.do(self.ports.trees.commit([self.asked(writes, expects=tuple(seen))]))
        if wrong:
            assert isinstance(outcome, ExpectationFailed)
            assert outcome.expected == seen[-1]
        else:
            self.check(outcome, writes)

    @rule(key=keys)
    def race(self, key: Key) -> None:
        scope, path = self.place(key)
        seen = Expect(scope, path, self.model.version(scope, path))
        rivals = [{key: f"rival {n}"} for n in range(3)]
        asked = [self.asked(writes, expects=(seen,)) for writes in rivals]

        async def tried() -> list[tuple[Outcome, ...]]:
            return await asyncio.gather(*[self.ports.trees.commit([one]) for one in asked])

        outcomes = [outcome for [outcome] in self.do(tried())]
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
        self.begin(scopes, layers)

    @precondition(lambda self: self.model.runs)
    @rule(choice=st.randoms(use_true_random=False))
    def start_on_what_another_run_saw(self, choice: Any) -> None:
        frozen = self.model.runs[choice.choice(sorted(self.model.runs))]
        self.begin(frozen.run.snapshot, frozen.layers)

    @precondition(lambda self: self.model.runs)
    @rule(choice=st.randoms(use_true_random=False))
    def let_go(self, choice: Any) -> None:
        frozen = self.model.runs.pop(choice.choice(sorted(self.model.runs)))
        assert self.do(
            self.ports.runs.update(structs.replace(frozen.run, snapshot_kept=False), frozen.run)
        )

    @rule()
    def tidy_up(self) -> None:
        self.do(self.ports.upkeep.collect(NOW + 1, grace_ms=0, event_retention_ms=1000))

    @invariant()
    def what_is_put_is_seen_and_composing_is_merging(self) -> None:
        trees = self.do(self.ports.trees.read(self.scopes))
        expected = [self.model.texts(scope) for scope in self.scopes]
        assert [self.texts(tree) for tree in trees] == expected
        assert [tree.revision for tree in trees] == [
            self.model.revisions.get(scope, 0) for scope in self.scopes
        ]
        composed = {path: file.blob for path, file in compose(trees).files.items()}
        contents = self.do(self.ports.blobs.get(list(composed.values())))
        whole = {path: contents[blob.digest].decode() for path, blob in composed.items()}
        assert whole == merge_layers(expected)
        assert list(whole) == sorted(whole)

    @invariant()
    def a_snapshot_never_changes(self) -> None:
        for frozen in self.model.runs.values():
            trees = self.do(self.ports.trees.read(frozen.run.snapshot))
            assert tuple(self.texts(tree) for tree in trees) == frozen.layers

    def teardown(self) -> None:
        for (scope, path), said in self.model.versions.items():
            history = self.do(self.ports.trees.history(scope, path, limit=1000))
            numbers = [version.head.version for version in history]
            assert numbers == sorted(set(numbers), reverse=True)
            assert set(numbers) >= self.model.retained(scope, path, KEEP)
            for version in history:
                one = said[version.head.version - 1]
                assert version.head.revision == one.revision
                assert (version.head.entry is None) == (one.text is None)
        events = self.do(
            list_events(self.ports, tenant=self.tenant, types=frozenset({WORKSPACE_UPDATED}))
        )
        told = [(e.scope, Path(e.payload["path"]), e.payload["version"]) for e in events]
        assert told == self.model.log

    def place(self, key: Key) -> tuple[Scope, Path]:
        return self.scopes[key[0]], key[1]

    def asked(self, writes: Mapping[Key, str | None], **more: Any) -> Commit:
        made = [self.do(write(self.ports, t, *self.place(key))) for key, t in writes.items()]
        return commit(*made, max_versions=KEEP, **more)

    def check(self, outcome: Outcome, writes: Mapping[Key, str | None]) -> None:
        """An applied commit, made in the model too, must have become the same versions."""
        expected = self.model.write({self.place(key): text for key, text in writes.items()})
        assert [head.version for head in assert_applied(outcome).heads] == expected

    def begin(self, layers: Any, seen: tuple[Texts, ...]) -> None:
        id = f"run_{self.tenant}_{next(self.names)}"
        [started] = self.do(self.ports.runs.start([(new_run(id, self.scopes[0]), layers)]))
        assert all(isinstance(layer, SnapshotLayer) for layer in started.snapshot)
        self.model.runs[id] = ModelRun(started, seen)

    def texts(self, tree: Tree) -> Texts:
        assert all(head.entry for head in tree.heads.values())
        entries = {path: head.entry for path, head in tree.heads.items() if head.entry}
        contents = self.do(self.ports.blobs.get([entry.blob for entry in entries.values()]))
        return {path: contents[entry.blob.digest].decode() for path, entry in entries.items()}


@contextmanager
def staged(name: str, place: StoreLocation) -> Iterator[Stage]:
    opened = STORES[name](place)
    with asyncio.Runner() as runner:
        ports = runner.run(_entered(opened))
        try:
            yield Stage(ports, runner)
        finally:
            runner.run(_left(opened))


async def _entered(opened: Any) -> Ports:
    ports: Ports = await opened.__aenter__()
    return ports


async def _left(opened: Any) -> None:
    await opened.__aexit__(None, None, None)


@pytest.mark.parametrize("name", STORES)
def test_any_history_is_as_dictionaries_would_have_it(name: str, place: StoreLocation) -> None:
    # The same histories every time, so that a failure always comes of a change.
    chosen = settings(
        max_examples=EXAMPLES[name],
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    with staged(name, place) as stage:
        run_state_machine_as_test(partial(Histories, stage), settings=chosen)  # type: ignore[arg-type]  # a factory does as well
