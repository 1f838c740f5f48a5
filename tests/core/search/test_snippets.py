"""What shows that a text has what was looked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.full_text import query_terms, ranked
from carrel.core.search.snippets import LONGEST, fits, passage, snippet

TEXTS = st.text(st.characters(codec="utf-8"), max_size=400)
WORDS = st.lists(st.sampled_from(["heron", "Übung", "wren", "a", "漢", "2"]), max_size=6)


@given(WORDS, st.lists(st.sampled_from(["heron", "her", "ubung", "wr", "x", "漢"]), max_size=3))
def test_a_text_fits_where_every_word_begins_one_of_its_own(there: list[str], q: list[str]) -> None:
    text, wanted = " ".join(there), query_terms(" ".join(q))
    own = [query_terms(word)[0] for word in there]
    assert fits(wanted, text) == all(any(one.startswith(word) for one in own) for word in wanted)


@given(TEXTS, TEXTS)
def test_whatever_is_looked_for_a_snippet_is_one_short_line(query: str, text: str) -> None:
    wanted = query_terms(query)
    shown = snippet(wanted, passage(wanted, text))
    assert len(shown) <= LONGEST + 2
    assert "\n" not in shown


@given(TEXTS, TEXTS)
def test_what_fits_a_question_is_ranked_for_it(query: str, text: str) -> None:
    wanted = query_terms(query)
    if wanted and fits(wanted, text):
        assert ranked(query, [("it", text, 0)]) == ["it"]


def test_a_snippet_has_the_word_that_was_found_however_long_the_line_is() -> None:
    line = "x " * 3000 + "the Kingfishers sing " + "y " * 3000
    text = f"# Title\n\nnothing here\n{line}\nkingfisher again\n"
    wanted = query_terms("kingfisher")
    shown = snippet(wanted, passage(wanted, text))
    assert "the Kingfishers sing" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_accents_make_no_difference_however_they_are_written() -> None:
    wanted = query_terms("ubermassig")
    for text in ("Übermäßig", "U\u0308berma\u0308ßig"):
        assert fits(wanted, text)
        assert snippet(wanted, passage(wanted, f"first\n{text}")) == "Übermäßig"


def test_without_the_word_the_first_line_that_says_anything_is_shown() -> None:
    assert passage(query_terms("wren"), "\n\n  # Title \nmore") == "# Title"
    assert passage(query_terms("wren"), "") == ""
