"""Three-way merges of texts by lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.files.three_way_merge import (
    MAX_MERGED_LINES,
    MergeLabels,
    has_conflict_marks,
    merge_texts,
)

LABELS = MergeLabels("override", "pinned", "offered")
TEXTS = st.lists(st.sampled_from("abcd"), max_size=12).map("\n".join)


def merge(base: str, ours: str, theirs: str) -> tuple[str, int]:
    merged = merge_texts(base, ours, theirs, LABELS)
    return merged.text, merged.conflicts


@given(TEXTS, TEXTS)
def test_a_side_that_changed_nothing_gives_way(base: str, other: str) -> None:
    assert merge(base, base, other) == (other, 0)
    assert merge(base, other, base) == (other, 0)
    assert merge(base, other, other) == (other, 0)


@given(TEXTS, TEXTS, TEXTS)
def test_a_merge_loses_no_line_of_either_side_unless_the_other_removed_it(
    base: str, ours: str, theirs: str
) -> None:
    text, conflicts = merge(base, ours, theirs)
    lines = text.split("\n")
    assert set(ours.split("\n")) - set(base.split("\n")) <= set(lines)
    assert set(theirs.split("\n")) - set(base.split("\n")) <= set(lines)
    assert has_conflict_marks(text) == (conflicts > 0)


def test_changes_of_different_places_are_joined() -> None:
    assert merge("a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nb\nc\nD\ne\n") == ("a\nB\nc\nD\ne\n", 0)


def test_different_changes_of_one_place_are_marked_with_all_three() -> None:
    assert merge("a\nb\nc", "a\nx\nc", "a\ny\nc") == (
        "a\n<<<<<<< override\nx\n||||||| pinned\nb\n=======\ny\n>>>>>>> offered\nc",
        1,
    )


def test_texts_too_long_to_compare_conflict_only_where_they_differ() -> None:
    base = "\n".join(f"line {n}" for n in range(MAX_MERGED_LINES + 10))
    ours, theirs = base.replace("line 5\n", "ours\n"), base.replace("line 9\n", "theirs\n")
    text, conflicts = merge(base, ours, theirs)
    assert conflicts == 0
    assert "ours\n" in text
    assert "theirs\n" in text
    longer = "\n".join(f"other {n}" for n in range(MAX_MERGED_LINES + 10))
    assert merge(base, longer, longer + "!")[1] == 1
