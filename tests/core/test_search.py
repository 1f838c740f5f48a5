"""What counts as a word, and which of the found texts come first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search import LONGEST, MOST_BYTES, distinct, ranked, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("— … !", ()),
        ("Deploy v2.1 to EU_West", ("deploy", "v2", "1", "to", "eu", "west")),
        ("Código ÉTÉ Straße", ("codigo", "ete", "strasse")),
        ("ﬁne ①", ("fine", "1")),
        ("東京 tower", ("東", "京", "tower")),
    ],
)
def test_words_are_folded(text: str, expected: tuple[str, ...]) -> None:
    assert words(text) == expected


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert words(" ".join(words(text))) == words(text)


@given(st.text(max_size=30))
def test_a_text_is_found_by_itself_and_by_the_beginning_of_its_last_word(text: str) -> None:
    there = words(text)
    expected = ["it"] if there else []
    assert ranked(text, [("it", text, 0)]) == expected
    if there:
        assert ranked(there[-1][:1], [("it", text, 0)]) == expected


def test_a_long_word_is_known_by_its_beginning() -> None:
    assert words("a" * 1000) == ("a" * LONGEST,)


def test_an_index_takes_each_word_once_and_not_without_end() -> None:
    assert distinct("to be or not to be") == ("to", "be", "or", "not")
    many = distinct(" ".join(f"word{n}" for n in range(100_000)))
    assert sum(map(len, many)) <= MOST_BYTES
    assert many[:2] == ("word0", "word1")


def order(query: str, *texts: str) -> list[str]:
    """The texts as they are ranked, where each is newer than those before it."""
    return ranked(query, [(text, text, at) for at, text in enumerate(texts)])


def test_more_words_beat_fewer_and_none_is_no_answer() -> None:
    assert order("red apple", "red apples", "a red pear", "green") == ["red apples", "a red pear"]


def test_a_whole_word_beats_a_beginning() -> None:
    assert order("port", "the port is open", "a portrait") == ["the port is open", "a portrait"]


def test_words_together_beat_scattered_ones() -> None:
    together, scattered = "we met in new york today", "a new thing came from york"
    assert order("new york", together, scattered) == [together, scattered]


def test_newer_beats_older_where_all_else_is_equal() -> None:
    assert order("tea", "tea one", "tea two") == ["tea two", "tea one"]
