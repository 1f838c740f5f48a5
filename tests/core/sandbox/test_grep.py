"""Grep patterns: refusals, and matches equal to a line-by-line search."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import expand_braces
from carrel.core.sandbox.grep import (
    FileSearch,
    GrepOutput,
    GrepQuery,
    compile_pattern,
    format_rows,
    matching_blocks,
    matching_lines,
)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "look-around and this kind of group are not supported"),
        ("(?<!a)b", "look-around and this kind of group are not supported"),
        (r"(a)\1", r"\1 is not supported"),
        ("a**", "a repetition follows another: **"),
        ("a*+", "a repetition follows another: *+"),
        ("*a", "there is nothing for * to repeat"),
        ("(|*)", "there is nothing for * to repeat"),
        ("(a", "a ( is not closed"),
        ("a)", "a ) closes nothing"),
        ("[a", "a [ is not closed"),
        ("[]", "a [ is not closed"),
        ("[a-", "a [ is not closed"),
        ("[z-a]", "invalid character class range: z-a"),
        ("[[:nothing:]]", "invalid character class range: [:nothing:]"),
        (r"\C", r"\C is not supported"),
        (r"a\\\C", r"\C is not supported"),
        ("\\", "trailing \\"),
        (r"\p{Klingon}", r"invalid character class range: \p{Klingon}"),
        (r"\x{110000}", r"\x{110000 is not supported"),
        ("a{3,2}", "invalid repetition size: {3,2}"),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("(a{100}){100}", "invalid repetition size: {100}"),
        ("a" * 1001, "it has more than 1000 characters"),
        (r"(?:\p{L}{500}){2}", "it is too large"),
        ("\ud800", "invalid UTF-8"),
        ("{0}[", "there is nothing for {0} to repeat"),
        ("(?{0}", "look-around and this kind of group are not supported"),
    ],
)
def test_an_invalid_pattern_is_refused_with_a_reason(pattern: str, reason: str) -> None:
    with pytest.raises(ValidationError) as problem:
        compile_pattern(pattern)
    assert str(problem.value) == f"Invalid pattern: {reason}"


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
        (r"[^\n]b", "a\nb\nab", [3]),
        (r"a\nb", "a\nb", []),
        ("a\nb", "a\nb", []),
        ("(?s)a.b", "a\nb", []),
        (r"\Aa", "b\na", []),
        (r"\Aa", "a\na", [1]),
        (r"\Qa.b", "axb\na.b", [2]),
        (r"a\\C", "a\\C", [1]),
        (r"\P{L}", "a\n1", [2]),
        ("a|b", "b\nc\na", [1, 3]),
    ],
)
def test_matching_lines_are_numbered(pattern: str, text: str, expected: list[int]) -> None:
    assert matching_lines(compile_pattern(pattern), text.encode(), 100) == expected


@given(
    st.sampled_from(["a", "a|b", "[ab]c", "a.*b", "^a", "b$", "(ab)+", "a?b{2}", r"\ba", "c*"]),
    st.text(st.sampled_from("abc \n"), max_size=30),
    st.integers(1, 4),
)
def test_a_text_is_searched_line_by_line(pattern: str, text: str, limit: int) -> None:
    naive = [n for n, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]
    assert matching_lines(compile_pattern(pattern), text.encode(), limit) == naive[:limit]


@given(
    st.sampled_from(
        [r"\{[^}]*\}", r"a\n+b", "^a$", "a.*?b", r"\n\n", r"b\n", "b$", r"a\n|b*", "é?\\}"]
    ),
    st.text(st.sampled_from("ab{}é\n"), max_size=30),
    st.integers(1, 4),
)
def test_a_search_across_lines_has_the_lines_of_all_matches(
    pattern: str, text: str, limit: int
) -> None:
    line_count = len(text.split("\n")) - (not text or text.endswith("\n"))
    spanned: set[int] = set()
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        first, last = (text.count("\n", 0, at) + 1 for at in (match.start(), match.end()))
        ends_with_line = match.end() > match.start() and text[match.end() - 1] == "\n"
        spanned |= set(range(first, last + 1 - ends_with_line))
    expected = sorted(number for number in spanned if number <= line_count)
    numbers = matching_blocks(compile_pattern(pattern, multiline=True), text.encode(), 100)
    assert numbers == expected
    first_numbers = matching_blocks(compile_pattern(pattern, multiline=True), text.encode(), limit)
    assert first_numbers[:limit] == expected[:limit]


def test_a_search_across_lines_of_many_matches_goes_on_line_by_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("carrel.core.sandbox.grep.MAX_BLOCK_MATCHES", 2)
    regex = compile_pattern(r"x|a\nb", multiline=True)
    assert matching_blocks(regex, b"xxxxa\nb\nx\nxa\nb\n", 9) == [1, 3, 4]
    assert matching_blocks(regex, b"xa\nb\nx", 9) == [1, 2, 3]


def test_case_is_ignored_in_every_alternative() -> None:
    assert matching_lines(compile_pattern("a|B", ignore_case=True), b"A\nb\nc", 9) == [1, 2]
    assert matching_lines(compile_pattern("a|B"), b"A\nb\nB", 9) == [3]


@given(st.binary(max_size=60), st.sampled_from(["", "^", "$", ".", r"\W", r"[^a]", "a"]))
def test_binary_content_is_searched_line_by_line(content: bytes, pattern: str) -> None:
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    regex = compile_pattern(pattern)
    expected = [number for number, line in enumerate(lines, 1) if regex.search(line)]
    assert matching_lines(regex, content, 100) == expected


def test_a_backtracking_pattern_matches_in_linear_time() -> None:
    assert matching_lines(compile_pattern("(a+)+$"), b"a" * 100_000 + b"b", 1) == []


def test_only_matching_lines_are_formatted() -> None:
    query = GrepQuery("x", mode=GrepOutput.CONTENT, line_numbers=True)
    assert output_of(query, "a:b", b"x0\r\n1\nx2") == b"a:b:1:x0\r\na:b:3:x2\n"
    assert output_of(GrepQuery("x", mode=GrepOutput.CONTENT), "", b"0\n1x\n") == b"1x\n"
    assert output_of(GrepQuery("x", mode=GrepOutput.COUNT), "f", b"x\nx\n") == b"f:2\n"
    assert output_of(GrepQuery("x", root="f"), "f", b"x") == b"f\n"
    assert output_of(GrepQuery("x"), "f", b"y\n") == b""


@pytest.mark.parametrize("mode", GrepOutput)
def test_lines_given_in_parts_are_found_as_in_the_whole(mode: GrepOutput) -> None:
    query = GrepQuery("x", mode=mode, line_numbers=True)
    lines = [b"0\n", b"x1\n2\n", b"3\nx4\n", b"x5"]
    assert output_of(query, "f", *lines) == output_of(query, "f", b"".join(lines))


def output_of(query: GrepQuery, name: str, *parts: bytes) -> bytes:
    search = FileSearch(query, name, 1000)
    for part in parts:
        search.feed(part)
    return format_rows(query, search.rows())


def test_files_are_selected_by_name_or_by_path() -> None:
    assert expand_braces("*.{ts,tsx}") == ("*.ts", "*.tsx")
    assert expand_braces("{a,b}/{c,d}") == ("a/c", "a/d", "b/c", "b/d")
    assert expand_braces("a}{b") == ("a}{b",)
    assert expand_braces("{" + "," * 64 + "}") == ("{" + "," * 64 + "}",)
    assert GrepQuery("x", glob="*.py").includes(Path("a/b.py"))
    assert not GrepQuery("x", glob="a/*.py").includes(Path("b/a/c.py"))
    assert not GrepQuery("x").includes(Path("a/.git/config"))
    assert GrepQuery("x").includes(Path(".github/x"))
