"""What the words of a text are, and which text answers a question best."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.full_text import (
    MAX_QUERY_TERMS,
    MAX_WORD_LENGTH,
    index_terms,
    query_terms,
    rank_texts,
    tokenize,
)
from carrel.core.store.record import RecordType


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, World", ("hello", "world")),
        ("Señor Müller trinkt Straßenkaffee", ("senor", "muller", "trinkt", "strassenkaffee")),
        ("İstanbul ΣΊΣΥΦΟΣ", ("istanbul", "σισυφοσ")),
        ("ﬁle ①", ("file", "1")),
        ("snake_case kebab-case a.b", ("snake", "case", "kebab", "case", "a", "b")),
        ("東京 tower", ("東", "京", "tower")),
        ("x東京y", ("x", "東", "京", "y")),
        ("v2 3.11", ("v2", "3", "11")),
        ("!!! -- … 🎉", ()),
        ("", ()),
        ("x" * 100, ("x" * MAX_WORD_LENGTH,)),
    ],
)
def test_words_are_folded_letters_and_digits(text: str, found: tuple[str, ...]) -> None:
    assert tokenize(text) == found


@given(st.text())
def test_words_of_words_are_the_same_words(text: str) -> None:
    assert tokenize(" ".join(tokenize(text))) == tokenize(text)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_plain_text_is_folded_as_any_other(text: str) -> None:
    assert tokenize(text) == tokenize(text + " é")[:-1]


def test_a_question_has_each_word_once_and_not_too_many() -> None:
    assert query_terms("a b A á") == ("a", "b")
    assert len(query_terms(" ".join(map(str, range(100))))) == MAX_QUERY_TERMS


def test_memories_are_found_by_what_they_say_and_by_their_tags() -> None:
    body = {"content": "Deploys on Friday", "tags": ["Ops"]}
    assert index_terms(RecordType.MEMORY, body) == ("deploys", "on", "friday", "ops")
    assert index_terms(RecordType.AGENT, body) == ()


def order(query: str, *texts: str) -> list[str]:
    found = [(text, text, at) for at, text in enumerate(texts)]
    return rank_texts(query, found)


def test_all_words_beat_some_of_them() -> None:
    assert order("blue whale", "whale whale", "a whale that is blue") == [
        *("a whale that is blue", "whale whale"),
    ]


def test_a_whole_word_beats_a_beginning() -> None:
    assert order("port", "port of call", "portland") == ["port of call", "portland"]


def test_a_phrase_beats_scattered_words() -> None:
    assert order("blue whale", "the blue whale", "whale, blue") == ["the blue whale", "whale, blue"]
    assert order("東京", "東京都", "京と東")[0] == "東京都"


def test_what_is_newer_breaks_ties() -> None:
    assert order("tea", "tea with milk", "tea with lemon") == ["tea with lemon", "tea with milk"]


def test_what_has_nothing_of_it_is_left_out_and_no_words_find_nothing() -> None:
    assert order("tea", "coffee") == []
    assert order("!!!", "coffee") == order("", "coffee") == []


@given(st.text(), st.lists(st.text()))
def test_whatever_is_asked_of_whatever_is_answered(query: str, texts: list[str]) -> None:
    assert set(order(query, *texts)) <= set(texts)
