"""What shows that a text has what was looked for."""

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
def test_a_text_fits_where_every_word_begins_one_of_its_own(there: list[str], q: list[str]) -> None:
    text, wanted = " ".join(there), query_terms(" ".join(q))
    own = [query_terms(word)[0] for word in there]
    assert has_all_terms(wanted, text) == all(
        any(one.startswith(word) for one in own) for word in wanted
    )


@given(TEXTS, TEXTS)
def test_whatever_is_looked_for_a_snippet_is_one_short_line(query: str, text: str) -> None:
    wanted = query_terms(query)
    shown = make_snippet(wanted, find_passage(wanted, text))
    assert len(shown) <= MAX_SNIPPET_LENGTH + 2
    assert "\n" not in shown


@given(TEXTS, TEXTS)
def test_what_fits_a_question_is_ranked_for_it(query: str, text: str) -> None:
    wanted = query_terms(query)
    if wanted and has_all_terms(wanted, text):
        assert rank_texts(query, [("it", text, 0)]) == ["it"]


def test_a_snippet_has_the_word_that_was_found_however_long_the_line_is() -> None:
    line = "x " * 3000 + "the Kingfishers sing " + "y " * 3000
    text = f"# Title\n\nnothing here\n{line}\nkingfisher again\n"
    wanted = query_terms("kingfisher")
    shown = make_snippet(wanted, find_passage(wanted, text))
    assert "the Kingfishers sing" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_accents_make_no_difference_however_they_are_written() -> None:
    wanted = query_terms("ubermassig")
    for text in ("Übermäßig", "U\u0308berma\u0308ßig"):
        assert has_all_terms(wanted, text)
        assert make_snippet(wanted, find_passage(wanted, f"first\n{text}")) == "Übermäßig"


def test_without_the_word_the_first_line_that_says_anything_is_shown() -> None:
    assert find_passage(query_terms("wren"), "\n\n  # Title \nmore") == "# Title"
    assert find_passage(query_terms("wren"), "") == ""
