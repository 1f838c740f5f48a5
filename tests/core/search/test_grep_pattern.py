"""The language of grep: its refusals, and that lines are found as a naive search finds them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.sandbox.grep import (
    GrepOutput,
    GrepQuery,
    alternatives,
    compiled,
    format_matches,
    found_lines,
)
from carrel.core.search.char_ranges import joined, others
from carrel.core.search.grep_pattern import translate_pattern


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "look-around and this kind of group are not supported"),
        ("(?<!a)b", "look-around and this kind of group are not supported"),
        (r"(a)\1", r"\1 is not supported"),
        ("a**", "a repetition follows another: **"),
        ("a*+", "a repetition follows another: *+"),
        ("*a", "there is nothing for * to repeat"),
        ("(|*)", "there is nothing for * to repeat"),
        ("^*", "what has no width cannot be repeated"),
        (r"\b+", "what has no width cannot be repeated"),
        (r"a\nb", r"a line is searched at a time, and so \n is in none"),
        (r"\x0a", r"a line is searched at a time, and so \n is in none"),
        ("a\nb", "a line is searched at a time, and so no pattern has a line feed"),
        ("(a", "a ( is not closed"),
        ("a)", "a ) closes nothing"),
        ("[a", "a [ is not closed"),
        ("[]", "a [ is not closed"),
        ("[a-", "a [ is not closed"),
        ("[z-a]", "a range in brackets goes from one character to a later one"),
        ("[[:nothing:]]", "there is no such class in [: :]"),
        ("[a&&b]", "sets of characters cannot be combined"),
        (r"\A", r"\A is not supported"),
        (r"\Qa\E", r"\Q is not supported"),
        ("\\", "\\ is not supported"),
        (r"\P{L}", r"say [^\p{…}] for what is not of a kind"),
        (r"\p{Klingon}", r"\p is not supported"),
        (r"\x{110000}", "there is no such character"),
        ("a{3,2}", "{3,2} is no repetition"),
        ("a{1001}", "it repeats more than 1000 times"),
        ("(a{100}){100}", "it repeats more than 1000 times"),
        ("(" * 41 + ")" * 41, "its groups are nested too deeply"),
        ("a" * 1001, "it has more than 1000 characters"),
        (r"(?:\p{L}{500}){2}", "it is too large"),
    ],
)
def test_what_is_not_of_the_language_is_refused_in_our_words(pattern: str, why: str) -> None:
    with pytest.raises(ValidationError) as problem:
        compiled(pattern)
    assert str(problem.value) == f"Invalid pattern: {why}"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("func() {", "func {", [1]),
        ("interface{}", "x interface{} y", [1]),
        ("a{,2}", "a{,2}", [1]),
        ("[]a]+", "]]", [1]),
        ("[^]]", "]\nx", [2]),
        ("[a-]", "-", [1]),
        (r"[\s\S]*b", "a\nb", [2]),
        (r"[^x]y", "x\ny", []),
        (r"\Wy", "x\ny", []),
        ("^$", "a\n\nb\n", [2]),
        ("^$", "", []),
        ("$", "a", [1]),
        ("", "a\nb", [1, 2]),
        (r"\bfoo\b", "food\na foo.", [2]),
        ("(?i)straße", "STRASSE\nSTRAßE", [2]),
        ("(?i)k", "\u212a", [1]),
        (r"\d", "\u0663", []),
        (r"\p{Lu}\p{Nd}", "É\u0663", [1]),
        ("a$", "a\r\na\n", [2]),
        ("x(?i)y|z", "xY\nZ\nX", [1, 2]),
        ("(?<n>a)(?P<m>b)", "ab", [1]),
        (r"\.\*\$\-\_", ".*$-_", [1]),
    ],
)
def test_lines_are_found(pattern: str, text: str, expected: list[int]) -> None:
    assert found_lines(compiled(pattern), text.encode(), 100) == expected


@given(
    st.sampled_from(["a", "a|b", "[ab]c", "a.*b", "^a", "b$", "(ab)+", "a?b{2}", r"\ba", "c*"]),
    st.text(st.sampled_from("abc \n"), max_size=30),
    st.integers(1, 4),
)
def test_a_text_is_searched_line_by_line(pattern: str, text: str, most: int) -> None:
    naive = [n for n, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]
    assert found_lines(compiled(pattern), text.encode(), most) == naive[:most]


def test_patterns_that_would_take_others_for_ever_do_not() -> None:
    assert found_lines(compiled("(a+)+$"), b"a" * 100_000 + b"b", 1) == []


@given(st.lists(st.tuples(st.integers(0, 0x10FFFF), st.integers(0, 0x10FFFF)), max_size=5))
def test_what_is_not_among_others_is_among_these(pairs: list[tuple[int, int]]) -> None:
    some = joined((min(pair), max(pair)) for pair in pairs)
    rest = others(some)
    real = joined((*some, (0xD800, 0xDFFF)))
    assert joined((*real, *rest)) == ((0, 0x10FFFF),)
    for first, last in rest:
        assert not any(low <= first <= high or low <= last <= high for low, high in real)


def test_only_lines_that_were_found_are_told() -> None:
    wanted = GrepQuery("x", mode=GrepOutput.CONTENT, numbers=True)
    assert format_matches(wanted, "a:b", b"0\r\n1\n2", [1, 3]) == b"a:b:1:0\r\na:b:3:2\n"
    assert format_matches(GrepQuery("x", mode=GrepOutput.CONTENT), "", b"0\n1\n", [2]) == b"1\n"
    assert format_matches(GrepQuery("x", mode=GrepOutput.COUNT), "f", b"", [1, 2]) == b"f:2\n"
    assert format_matches(GrepQuery("x", root="f"), "", b"", [1]) == b"f\n"


def test_files_are_chosen_by_name_or_by_path() -> None:
    assert alternatives("*.{ts,tsx}") == ("*.ts", "*.tsx")
    assert alternatives("{a,b}/{c,d}") == ("a/c", "a/d", "b/c", "b/d")
    assert alternatives("a}{b") == ("a}{b",)
    assert alternatives("{" + "," * 64 + "}") == ("{" + "," * 64 + "}",)
    assert GrepQuery("x", glob="*.py").searches(Path("a/b.py"))
    assert not GrepQuery("x", glob="a/*.py").searches(Path("b/a/c.py"))
    assert not GrepQuery("x").searches(Path("a/.git/config"))
    assert GrepQuery("x").searches(Path(".github/x"))


def test_a_pattern_is_spelled_without_letters_that_mean_something() -> None:
    said = translate_pattern(r"a\(\b")
    assert said.re2 == r"(?m)\x{61}[\x{28}]\b"
    assert said.ripgrep == r"(?m)\x{61}[\x{28}](?-u:\b)"
