"""Tokenizing texts and ranking them for a query."""

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
    ("text", "expected"),
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
def test_tokens_are_folded_letters_and_digits(text: str, expected: tuple[str, ...]) -> None:
    assert tokenize(text) == expected


@given(st.text())
def test_tokenizing_is_idempotent(text: str) -> None:
    assert tokenize(" ".join(tokenize(text))) == tokenize(text)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_ascii_text_is_folded_like_any_other(text: str) -> None:
    assert tokenize(text) == tokenize(text + " é")[:-1]


def test_query_terms_are_unique_and_limited() -> None:
    assert query_terms("a b A á") == ("a", "b")
    assert len(query_terms(" ".join(map(str, range(100))))) == MAX_QUERY_TERMS


def test_memories_are_indexed_by_content_and_tags() -> None:
    body = {"content": "Deploys on Friday", "tags": ["Ops"]}
    assert index_terms(RecordType.MEMORY, body) == ("deploys", "on", "friday", "ops")
    assert index_terms(RecordType.AGENT, body) == ()


def rank(query: str, *texts: str) -> list[str]:
    candidates = [(text, text, time) for time, text in enumerate(texts)]
    return rank_texts(query, candidates)


def test_a_text_with_all_terms_ranks_above_a_text_with_some() -> None:
    assert rank("blue whale", "whale whale", "a whale that is blue") == [
        *("a whale that is blue", "whale whale"),
    ]


def test_a_complete_word_ranks_above_a_prefix() -> None:
    assert rank("port", "port of call", "portland") == ["port of call", "portland"]


def test_a_phrase_ranks_above_scattered_words() -> None:
    assert rank("blue whale", "the blue whale", "whale, blue") == ["the blue whale", "whale, blue"]
    assert rank("東京", "東京都", "京と東")[0] == "東京都"


def test_the_newer_text_wins_ties() -> None:
    assert rank("tea", "tea with milk", "tea with lemon") == ["tea with lemon", "tea with milk"]


def test_texts_without_a_term_are_omitted_and_an_empty_query_matches_nothing() -> None:
    assert rank("tea", "coffee") == []
    assert rank("!!!", "coffee") == rank("", "coffee") == []


@given(st.text(), st.lists(st.text()))
def test_ranking_returns_only_texts_that_it_was_passed(query: str, texts: list[str]) -> None:
    assert set(rank(query, *texts)) <= set(texts)
