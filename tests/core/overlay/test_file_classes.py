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
from carrel.core.overlay.pattern_coverage import covers

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


@pytest.mark.parametrize(
    "text",
    [
        *("", "/a", "a//b", "../a", "a\\b", "x" * 300, "*" * 9, "policies/", "policies/**/", "**/"),
        *("**/../a", "**//a", "a/./*", "*/", "a/**/./b", "?/..", "a\x01*"),
    ],
)
def test_a_pattern_that_no_path_could_match_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_pattern(text)


def test_a_pattern_is_normalized_as_paths_are() -> None:
    decomposed, composed = "re\u0301sume\u0301/*.md", "r\u00e9sum\u00e9/*.md"
    assert parse_pattern(decomposed) == composed
    assert matches_any(Path("re\u0301sume\u0301/a.md"), [parse_pattern(decomposed)])


@given(st.text("ab*?/.", min_size=1, max_size=7), st.text("ab/.", min_size=1, max_size=7))
def test_a_pattern_that_a_path_matches_is_never_refused(pattern: str, text: str) -> None:
    try:
        path = Path(text)
    except ValidationError:
        return
    if pattern.count("*") <= 8 and matches_any(path, [pattern]):
        assert parse_pattern(pattern) == pattern


MARKDOWN_PINNED = FileClassRules(
    (ClassRule("*.md", PINNED), ClassRule("docs/rules.md", PINNED), ClassRule("law/**", PINNED))
)


@pytest.mark.parametrize(
    "text",
    [
        *("guardrails.md", "User.md", "user.md/x", "DOCS", "Docs/other.txt", "docs/Rules.md"),
        *("docs/RULES.md/x", "Law", "LAW/a.md", "a.MD"),
    ],
)
def test_the_letter_case_rule_holds_for_every_protected_path_and_its_parents(text: str) -> None:
    with pytest.raises(ValidationError, match="collides on some file systems"):
        MARKDOWN_PINNED.check_path(Path(text))


def test_paths_of_one_wildcard_collide_if_the_other_exists() -> None:
    classes = MARKDOWN_PINNED
    for text, other in (("Plan.md", "plan.md"), ("law/A.md", "law/a.md"), ("law/B", "law/b/c.md")):
        assert classes.check_path(Path(text)) is PINNED
        assert classes.may_collide(Path(text))
        assert classes.collide(Path(text), Path(other))
        assert not any(classes.collide(Path(text), Path(p)) for p in ("x", text, "law/c"))
    for text in ("notes/a.md", "a.txt"):
        assert not classes.may_collide(Path(text))


def test_the_deciding_rule_is_the_first_of_the_tenant_that_matches() -> None:
    paths = map(Path, ("policies/keep.md", "policies/a", "SOUL.md", "USER.md"))
    assert [POLICIES.deciding_rule(path) for path in paths] == [0, 1, None, None]


def test_newly_pinned_lists_the_paths_that_the_new_rules_pin() -> None:
    paths = [Path("policies/a.md"), Path("GUARDRAILS.md"), Path("SOUL.md")]
    assert FileClassRules().newly_pinned(POLICIES, paths) == [Path("policies/a.md")]


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("a.md", ["a.md"], ["A.md", "*.md", "?.md"]),
        ("*.md", ["a.md", "?.md", "a*.md", "*.md"], ["**/*.md", "b/a.md", "*"]),
        ("law/**", ["law/a", "law/**/x", "law/*/?.md", "law/**"], ["law", "**", "**/law/a"]),
        ("**/*.md", ["*.md", "a/*.md", "**/a.md", "a/**/b.md"], ["**", "a/**"]),
        ("**", ["**/*", "a/**", "?", "**/"], []),
    ],
)
def test_a_pattern_covers_those_that_match_nothing_else(
    pattern: str, covered: list[str], others: list[str]
) -> None:
    assert [other for other in covered + others if covers(pattern, other)] == covered


PATTERNS = st.text("ab*?/", min_size=1, max_size=6)


@given(PATTERNS, PATTERNS, st.text("ab/c", min_size=1, max_size=7))
def test_what_a_covered_pattern_matches_is_matched_by_the_other(
    wide: str, narrow: str, text: str
) -> None:
    try:
        path = Path(text)
    except ValidationError:
        return
    if covers(wide, narrow) and matches_any(path, [narrow]):
        assert matches_any(path, [wide])
