"""Live, pinned and managed file classes, and refusal of look-alike paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.file_classes import (
    BUILT_IN_RULES,
    ClassRule,
    FileClass,
    FileClassRules,
    matches_any,
    parse_pattern,
)

LIVE, PINNED, MANAGED = FileClass.LIVE, FileClass.PINNED, FileClass.MANAGED
POLICIES = FileClassRules((ClassRule("policies/keep.md", LIVE), ClassRule("policies/**", PINNED)))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a.md", ["a.md"], ["b/a.md", "a.mdx", "axmd"]),
        ("*.md", ["a.md", ".md"], ["b/a.md", "a.txt"]),
        ("**/a.md", ["a.md", "b/a.md", "b/c/a.md"], ["ba.md"]),
        ("memory/**", ["memory/a", "memory/b/c.md"], ["memory", "xmemory/a"]),
        ("n?tes/*", ["notes/a", "nites/b.md"], ["n/tes/a", "notes/a/b"]),
        ("a[b].md", ["a[b].md"], ["ab.md"]),
    ],
)
def test_one_star_stops_at_a_slash_and_two_stars_do_not(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    assert [text for text in yes + no if matches_any(Path(text), [pattern])] == yes


def test_the_built_in_rules_cannot_be_overridden() -> None:
    freed = FileClassRules((ClassRule("**", LIVE), ClassRule("GUARDRAILS.md", LIVE)))
    for rule in BUILT_IN_RULES:
        assert freed.class_of(Path(rule.pattern)) is rule.file_class


def test_the_first_matching_rule_decides() -> None:
    assert POLICIES.class_of(Path("policies/keep.md")) is LIVE
    assert POLICIES.class_of(Path("policies/a/b.md")) is PINNED
    assert POLICIES.class_of(Path("SOUL.md")) is LIVE
    assert POLICIES.class_of(Path("USER.md")) is MANAGED
    assert POLICIES.check_path(Path("policies/keep.md")) is LIVE


@given(st.data())
def test_a_path_that_differs_in_letter_case_alone_is_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([rule.pattern for rule in BUILT_IN_RULES] + ["policies/x.md"]))
    flips = data.draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    text = "".join(c.swapcase() if flip else c for c, flip in zip(name, flips, strict=True))
    if POLICIES.class_of(Path(text)) is LIVE:
        with pytest.raises(ValidationError, match="collides on some file systems"):
            POLICIES.check_path(Path(text))
    else:
        assert POLICIES.check_path(Path(text)) is POLICIES.class_of(Path(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "GUARDRAILS\u200b.md",
            "GUARDRAILS.md.",
            "GUARDRAILS.md ",
            "guardrails.MD. .",
            "USER.md\ufe0f",
        ),
        *(
            "\uff27UARDRAILS.md",
            "USER\u00ad.md",
            "policies./x.md",
            "Policies /x.md",
            "U\u017fER.md",
        ),
    ],
)
def test_a_path_that_collides_with_a_protected_path_on_some_disks_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="collides on some file systems"):
        POLICIES.check_path(Path(text))


@pytest.mark.parametrize("text", ["", "/a", "a//b", "../a", "a\\b", "x" * 300, "*" * 9])
def test_a_pattern_that_no_path_could_match_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_pattern(text)


def test_newly_pinned_lists_the_paths_that_the_new_rules_pin() -> None:
    paths = [Path("policies/a.md"), Path("GUARDRAILS.md"), Path("SOUL.md")]
    assert FileClassRules().newly_pinned(POLICIES, paths) == [Path("policies/a.md")]
