"""Tokenizing texts and ranking them for a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.full_text import (
    MAX_QUERY_TERMS,
    MAX_WORD_LENGTH,
    distinct_terms,
    index_terms,
    locate_words,
    parse_query,
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
        ("ชาเขียว", ("ช", "า", "เ", "ข", "ย", "ว")),
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
    assert parse_query("x b X ẋ").terms == ("x", "b")
    assert parse_query("the thing that Luis is").terms == ("thing", "luis", "the", "that", "is")
    assert len(parse_query(" ".join(map(str, range(100)))).terms) == MAX_QUERY_TERMS


def test_memories_are_indexed_by_content_and_tags() -> None:
    body = {"content": "Deploys on Friday", "tags": ["Ops"]}
    assert index_terms(RecordType.MEMORY, body) == ("deploys", "on", "friday", "ops")
    assert index_terms(RecordType.AGENT, body) == ()


@pytest.mark.parametrize(
    ("text", "indexed", "searched"),
    [
        ("東京 tower", ("東", "東京", "京", "tower"), ("東", "東京", "京", "tower")),
        ("ลุยส์", ("ลยส", "ยส", "ส"), ("ลยส",)),
        ("ชา tea", ("ชา", "า", "tea"), ("ชา", "tea")),
        ("ชาเขียว", ("ชาเ", "าเข", "เขย", "ขยว", "ยว", "ว"), ("ชาเ", "าเข", "เขย", "ขยว")),
    ],
)
def test_words_without_spaces_are_indexed_by_neighbouring_characters(
    text: str, indexed: tuple[str, ...], searched: tuple[str, ...]
) -> None:
    assert distinct_terms(text) == indexed
    assert parse_query(text).terms == searched


@given(st.text(st.sampled_from("東京ก าaé -😀e\u0301")))
def test_words_are_located_where_they_are(text: str) -> None:
    located = list(locate_words(text))
    assert tuple(word for _, word in located) == tokenize(text)
    assert all(tokenize(text[offset:])[0] == word for offset, word in located)
