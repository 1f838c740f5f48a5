"""Passages and snippets that show a match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.bm25 import rank_texts
from carrel.core.search.full_text import parse_query
from carrel.core.search.passages import (
    MAX_SNIPPET_LENGTH,
    count_matches,
    find_line,
    find_match,
    find_passage,
    make_snippet,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=400)
WORDS = st.lists(st.sampled_from(["heron", "Übung", "wren", "a", "漢", "2"]), max_size=6)


def snippet_of(query: str, text: str) -> str:
    terms = parse_query(query).searched_terms
    return make_snippet(terms, find_line(terms, text).text)


@given(WORDS, st.lists(st.sampled_from(["heron", "her", "ubung", "wr", "x", "漢"]), max_size=3))
def test_a_term_matches_when_it_is_a_prefix_of_a_word(words: list[str], query: list[str]) -> None:
    text, terms = " ".join(words), parse_query(" ".join(query)).terms
    own = [parse_query(word).terms[0] for word in words]
    single = [term for term in terms if term != "漢漢"]
    assert count_matches(single, text) == sum(
        any(item.startswith(term) for item in own) for term in single
    )


@given(TEXTS, TEXTS)
def test_a_snippet_is_one_short_line(query: str, text: str) -> None:
    snippet = snippet_of(query, text)
    assert len(snippet) <= MAX_SNIPPET_LENGTH + 2
    assert "\n" not in snippet


@given(TEXTS, TEXTS)
def test_a_matching_text_is_ranked_and_its_match_is_located(query: str, text: str) -> None:
    terms = parse_query(query).terms
    matched = bool(terms and count_matches(terms, text))
    assert [hit.key for hit in rank_texts(query, [("it", text, 0)])] == ["it"] * matched
    assert (find_match(terms, text, 100) is not None) == matched


def test_a_snippet_of_a_long_line_contains_the_match() -> None:
    line = "x " * 3000 + "the Kingfishers sing " + "y " * 3000
    text = f"# Title\n\nnothing here\n{line}\nkingfisher again\n"
    snippet = snippet_of("kingfisher", text)
    assert "the Kingfishers sing" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_accents_are_ignored_in_every_normalization() -> None:
    for text in ("Übermäßig", "U\u0308berma\u0308ßig"):
        assert count_matches(parse_query("ubermassig").terms, text)
        assert snippet_of("ubermassig", f"first\n{text}") == "Übermäßig"


def test_without_a_match_the_snippet_is_the_first_line_with_text() -> None:
    assert snippet_of("wren", "\n\n  # Title \nmore") == "# Title"
    assert snippet_of("wren", "") == ""


@pytest.mark.parametrize(
    ("query", "needle"),
    [
        ("where is the door code", "the code of the door is green"),
        ("门的密码是什么", "车库门的密码是绿色"),
        ("รหัสประตูคืออะไร", "รหัสประตูโรงรถเป็นสีเขียว"),
    ],
)
def test_a_passage_is_where_most_of_the_query_is(query: str, needle: str) -> None:
    before = "a door is a door, and here is where the day is. " * 20 + "门。" + "ห" * 40
    filler = " Some other words follow each other without end." * 40
    text = before + filler + needle + filler
    passage = find_passage(parse_query(query).searched_terms, text, 200)
    assert needle in passage.text
    assert len(passage.text) == 200
    assert text[passage.offset :].startswith(passage.text)


@given(TEXTS, TEXTS, st.integers(20, 200))
def test_a_passage_is_a_part_of_the_text_at_its_offset(query: str, text: str, length: int) -> None:
    passage = find_passage(parse_query(query).searched_terms, text, length)
    assert text[passage.offset : passage.offset + length] == passage.text
    assert len(passage.text) == min(length, len(text))
