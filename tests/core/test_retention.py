"""Retention: pruning never changes what a kept snapshot reads, and keeps no more than it must."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from carrel.core.retention import prunable_versions, visible_versions

Line = Sequence[tuple[int, int]]


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """The versions of one path with the revisions they were said at; some may be gone already."""
    steps = draw(st.lists(st.integers(1, 4), min_size=1, max_size=12))
    whole = [(n, sum(steps[:n])) for n in range(1, len(steps) + 1)]
    gone = draw(st.sets(st.integers(1, len(steps) - 1))) if len(steps) > 1 else set()
    return [one for one in whole if one[0] not in gone]


revisions = st.sets(st.integers(0, 50), max_size=5)
keeps = st.integers(1, 6)


def read(line: Line, revision: int) -> int | None:
    """What a snapshot at a revision sees."""
    seen = [version for version, said in line if said <= revision]
    return seen[-1] if seen else None


def pruned(line: Line, keep: int, held: Iterable[int]) -> Line:
    gone = prunable_versions(line, keep, held)
    return [one for one in line if one[0] not in gone]


@given(lines(), keeps, revisions)
def test_what_can_be_seen_is_never_prunable(line: Line, keep: int, held: set[int]) -> None:
    assert not visible_versions(line, held) & set(prunable_versions(line, keep, held))


@given(lines(), keeps, revisions)
def test_every_kept_revision_reads_the_same_before_and_after(
    line: Line, keep: int, held: set[int]
) -> None:
    after = pruned(line, keep, held)

    assert [read(after, revision) for revision in held] == [read(line, r) for r in held]
    assert read(after, 1000) == read(line, 1000)


@given(lines(), revisions)
def test_visible_is_what_reading_at_each_revision_gives(line: Line, held: set[int]) -> None:
    assert visible_versions(line, held) == {read(line, revision) for revision in held} - {None}


@given(lines(), keeps)
def test_with_nothing_held_exactly_the_newest_numbers_stay(line: Line, keep: int) -> None:
    newest = line[-1][0]

    assert pruned(line, keep, ()) == [one for one in line if one[0] > newest - keep]


@given(lines(), keeps, revisions)
def test_no_more_stays_than_is_new_or_seen(line: Line, keep: int, held: set[int]) -> None:
    newest, seen = line[-1][0], visible_versions(line, held)

    for version, _ in pruned(line, keep, held):
        assert version > newest - keep or version in seen


@given(lines(), keeps, revisions)
def test_pruning_twice_is_pruning_once(line: Line, keep: int, held: set[int]) -> None:
    once = pruned(line, keep, held)

    assert pruned(once, keep, held) == once


@given(lines(), revisions)
def test_the_newest_is_never_prunable(line: Line, held: set[int]) -> None:
    assert line[-1][0] not in prunable_versions(line, 1, held)


def test_where_nothing_was_said_there_is_nothing_to_prune() -> None:
    assert prunable_versions((), 3, [1, 2]) == ()
    assert visible_versions((), [1, 2]) == frozenset()


class Lives(RuleBasedStateMachine):
    """Writes, runs and releases in any order, pruning after each write."""

    def __init__(self) -> None:
        super().__init__()
        self.whole: list[tuple[int, int]] = []
        self.line: Line = []
        self.revision = 0
        self.held: list[int] = []

    @rule(keep=keeps)
    def write(self, keep: int) -> None:
        self.revision += 1
        self.whole.append((len(self.whole) + 1, self.revision))
        self.line = pruned([*self.line, self.whole[-1]], keep, self.held)

    @rule()
    def write_elsewhere(self) -> None:
        self.revision += 1

    @rule()
    def start(self) -> None:
        self.held.append(self.revision)

    @precondition(lambda self: self.held)
    @rule(choice=st.integers(0, 100))
    def share(self, choice: int) -> None:
        self.held.append(self.held[choice % len(self.held)])

    @precondition(lambda self: self.held)
    @rule(choice=st.integers(0, 100))
    def let_go(self, choice: int) -> None:
        self.held.pop(choice % len(self.held))

    @invariant()
    def every_kept_snapshot_reads_as_if_nothing_had_been_pruned(self) -> None:
        for revision in (*self.held, self.revision):
            assert read(self.line, revision) == read(self.whole, revision)


TestLives = Lives.TestCase
