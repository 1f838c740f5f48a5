"""Snippets that show a match."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.full_text import query_terms, rank_texts
from carrel.core.search.snippets import (
    MAX_SNIPPET_LENGTH,
    find_passage,
    has_all_terms,
    make_snippet,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=400)
WORDS = st.lists(st.sampled_from(["heron", "Übung", "wren", "a", "漢", "2"]), max_size=6)


@given(WORDS, st.lists(st.sampled_from(["heron", "her", "ubung", "wr", "x", "漢"]), max_size=3))
def test_a_text_matches_when_every_term_is_a_prefix_of_a_word(
    words: list[str], query: list[str]
) -> None:
    text, terms = " ".join(words), query_terms(" ".join(query))
    own = [query_terms(word)[0] for word in words]
    assert has_all_terms(terms, text) == all(
        any(item.startswith(term) for item in own) for term in terms
    )


@given(TEXTS, TEXTS)
def test_a_snippet_is_one_short_line(query: str, text: str) -> None:
    terms = query_terms(query)
    snippet = make_snippet(terms, find_passage(terms, text))
    assert len(snippet) <= MAX_SNIPPET_LENGTH + 2
    assert "\n" not in snippet


@given(TEXTS, TEXTS)
def test_a_matching_text_is_ranked(query: str, text: str) -> None:
    terms = query_terms(query)
    if terms and has_all_terms(terms, text):
        assert rank_texts(query, [("it", text, 0)]) == ["it"]


def test_a_snippet_of_a_long_line_contains_the_match() -> None:
    line = "x " * 3000 + "the Kingfishers sing " + "y " * 3000
    text = f"# Title\n\nnothing here\n{line}\nkingfisher again\n"
    terms = query_terms("kingfisher")
    snippet = make_snippet(terms, find_passage(terms, text))
    assert "the Kingfishers sing" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_accents_are_ignored_in_every_normalization() -> None:
    terms = query_terms("ubermassig")
    for text in ("Übermäßig", "U\u0308berma\u0308ßig"):
        assert has_all_terms(terms, text)
        assert make_snippet(terms, find_passage(terms, f"first\n{text}")) == "Übermäßig"


def test_without_a_match_the_passage_is_the_first_line_with_text() -> None:
    assert find_passage(query_terms("wren"), "\n\n  # Title \nmore") == "# Title"
    assert find_passage(query_terms("wren"), "") == ""
