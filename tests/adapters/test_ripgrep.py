"""ripgrep finds the very lines that we find without it, whatever the pattern and the bytes."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path as File

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.adapters import ripgrep
from carrel.adapters.ripgrep import Ripgrep
from carrel.core.errors import ValidationError
from carrel.core.sandbox.grep import compiled, found_lines
from carrel.core.search.grep_pattern import CompiledPattern, translate_pattern

ATOMS = (
    *"abkKsS_0 {}-]éſ",
    *(".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "^", "$", r"\b", r"\B", r"\t", r"\r", r"\."),
    *("[abk]", "[^ab]", r"[\W]", r"[^\w]", "[a-é]", r"\p{L}", r"[^\p{L}a]", "[[:alpha:]]"),
    *(r"[\S ]", r"\x{17f}", "(?i)", "(?-i)", "|", r"[\s\S]", "[]a]", "[^]]"),
)
TIMES = ("", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?", "+?", "??")
GROUPS = ("({})", "(?:{})", "(?i:{})", "(?P<n>{})")
PIECES = (
    *(b"a", b"b", b"k", b"K", b"s", b"S", b" ", b"_", b"0", b"-", b"{", b"]", b"\n", b"\n"),
    *(b"\r\n", b"\t", b"\0", b"\xff", b"\xed\xa0\x80", b"\xc3", b"\x80", b"\xef\xbb\xbf"),
    *(text.encode() for text in ("é", "\u017f", "\u212a", "€😀", "\u2028")),
)
atoms = st.tuples(st.sampled_from(ATOMS), st.sampled_from(TIMES)).map("".join)
patterns = st.recursive(
    st.lists(atoms, max_size=5).map("".join),
    lambda inner: st.tuples(
        st.sampled_from(GROUPS), st.lists(inner, max_size=3).map("".join), st.sampled_from(TIMES)
    ).map(lambda made: made[0].format(made[1]) + made[2] if "{" in made[0] else made[1]),
    max_leaves=6,
)
texts = st.lists(st.sampled_from(PIECES), max_size=24).map(b"".join)


def found() -> Ripgrep:
    """The tests bring their own; without it they fail."""
    program = ripgrep.found()
    assert program is not None
    return program


async def told(pattern: str, contents: list[bytes], most: int, case: bool) -> object:
    return await found().lines(translate_pattern(pattern, ignoring_case=case), contents, most)


@settings(max_examples=150)
@given(patterns, st.booleans(), st.lists(texts, min_size=1, max_size=20), st.integers(1, 9))
def test_both_find_the_same_lines(
    pattern: str, case: bool, contents: list[bytes], most: int
) -> None:
    try:
        finder = compiled(pattern, ignoring_case=case)
    except ValidationError:
        return
    ours = [found_lines(finder, content, most) for content in contents]
    theirs = asyncio.run(told(pattern, contents, most, case))
    assert theirs == ours


def test_what_it_does_not_understand_is_left_to_us() -> None:
    assert asyncio.run(found().lines(CompiledPattern("(", "("), [b"a"], 1)) is None


def test_nothing_is_left_behind(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert asyncio.run(told("a", [b"a\n", b"b"], 9, False)) == [[1], []]
    assert list(tmp_path.iterdir()) == []
