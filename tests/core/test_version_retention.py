"""Retention: pruning never changes a held snapshot and keeps no more than needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from carrel.core.version_retention import prunable_versions, visible_versions

Line = Sequence[tuple[int, int]]


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """The versions of one path with their revisions; some may be pruned already."""
    steps = draw(st.lists(st.integers(1, 4), min_size=1, max_size=12))
    all_versions = [(n, sum(steps[:n])) for n in range(1, len(steps) + 1)]
    pruned_versions = draw(st.sets(st.integers(1, len(steps) - 1))) if len(steps) > 1 else set()
    return [item for item in all_versions if item[0] not in pruned_versions]


revisions = st.sets(st.integers(0, 50), max_size=5)
keeps = st.integers(1, 6)


def read(line: Line, revision: int) -> int | None:
    """The version that a snapshot at a revision reads."""
    visible = [version for version, written_at in line if written_at <= revision]
    return visible[-1] if visible else None


def prune(line: Line, keep: int, held_revisions: Iterable[int]) -> Line:
    gone = prunable_versions(line, keep, held_revisions)
    return [item for item in line if item[0] not in gone]


@given(lines(), keeps, revisions)
def test_a_visible_version_is_never_prunable(
    line: Line, keep: int, held_revisions: set[int]
) -> None:
    assert not visible_versions(line, held_revisions) & set(
        prunable_versions(line, keep, held_revisions)
    )


@given(lines(), keeps, revisions)
def test_every_held_revision_reads_the_same_before_and_after_pruning(
    line: Line, keep: int, held_revisions: set[int]
) -> None:
    after = prune(line, keep, held_revisions)

    assert [read(after, revision) for revision in held_revisions] == [
        read(line, r) for r in held_revisions
    ]
    assert read(after, 1000) == read(line, 1000)


@given(lines(), revisions)
def test_visible_versions_are_those_read_at_each_revision(
    line: Line, held_revisions: set[int]
) -> None:
    assert visible_versions(line, held_revisions) == {
        read(line, revision) for revision in held_revisions
    } - {None}


@given(lines(), keeps)
def test_without_held_revisions_exactly_the_newest_versions_stay(line: Line, keep: int) -> None:
    newest = line[-1][0]

    assert prune(line, keep, ()) == [item for item in line if item[0] > newest - keep]


@given(lines(), keeps, revisions)
def test_only_new_or_visible_versions_stay(line: Line, keep: int, held_revisions: set[int]) -> None:
    newest, visible = line[-1][0], visible_versions(line, held_revisions)

    for version, _ in prune(line, keep, held_revisions):
        assert version > newest - keep or version in visible


@given(lines(), keeps, revisions)
def test_pruning_is_idempotent(line: Line, keep: int, held_revisions: set[int]) -> None:
    once = prune(line, keep, held_revisions)

    assert prune(once, keep, held_revisions) == once


@given(lines(), revisions)
def test_the_newest_version_is_never_prunable(line: Line, held_revisions: set[int]) -> None:
    assert line[-1][0] not in prunable_versions(line, 1, held_revisions)


def test_a_path_without_versions_has_nothing_to_prune() -> None:
    assert prunable_versions((), 3, [1, 2]) == ()
    assert visible_versions((), [1, 2]) == frozenset()


class RetentionMachine(RuleBasedStateMachine):
    """Writes, runs and releases in any order, pruning after each write."""

    def __init__(self) -> None:
        super().__init__()
        self.unpruned: list[tuple[int, int]] = []
        self.line: Line = []
        self.revision = 0
        self.held_revisions: list[int] = []

    @rule(keep=keeps)
    def write(self, keep: int) -> None:
        self.revision += 1
        self.unpruned.append((len(self.unpruned) + 1, self.revision))
        self.line = prune([*self.line, self.unpruned[-1]], keep, self.held_revisions)

    @rule()
    def write_elsewhere(self) -> None:
        self.revision += 1

    @rule()
    def start(self) -> None:
        self.held_revisions.append(self.revision)

    @precondition(lambda self: self.held_revisions)
    @rule(choice=st.integers(0, 100))
    def share(self, choice: int) -> None:
        self.held_revisions.append(self.held_revisions[choice % len(self.held_revisions)])

    @precondition(lambda self: self.held_revisions)
    @rule(choice=st.integers(0, 100))
    def release(self, choice: int) -> None:
        self.held_revisions.pop(choice % len(self.held_revisions))

    @invariant()
    def every_held_snapshot_reads_as_without_pruning(self) -> None:
        for revision in (*self.held_revisions, self.revision):
            assert read(self.line, revision) == read(self.unpruned, revision)


TestRetention = RetentionMachine.TestCase
