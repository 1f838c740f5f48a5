"""How one order is made of several."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.full_text import contains_phrase, rank_texts
from carrel.core.search.rank_fusion import fuse_rankings

ORDER = st.lists(st.integers(0, 30), unique=True)


@given(st.lists(ORDER, max_size=4), ORDER)
def test_everything_is_there_once_and_what_is_first_stays_first(
    orders: list[list[int]], first: list[int]
) -> None:
    made = fuse_rankings(orders, first)
    assert sorted(made) == sorted({*first, *(key for order in orders for key in order)})
    assert made[: len(first)] == first
    assert made == fuse_rankings(orders, first)


@given(ORDER, st.integers(0, 5))
def test_an_order_alone_stays_as_it_is(order: list[int], leading: int) -> None:
    assert (
        fuse_rankings([order]) == fuse_rankings([order, []]) == fuse_rankings([[], order]) == order
    )
    assert fuse_rankings([order, []], order[:leading]) == order
    assert fuse_rankings([order, order]) == order


@given(ORDER, ORDER)
def test_what_is_ahead_in_every_order_that_has_the_other_is_ahead(
    one: list[int], two: list[int]
) -> None:
    places = [{key: -at for at, key in enumerate(order)} for order in (one, two)]
    nowhere = -1000
    for ahead, behind in combinations(fuse_rankings([one, two]), 2):
        having = [place for place in places if ahead in place or behind in place]
        assert any(place.get(ahead, nowhere) > place.get(behind, nowhere) for place in having)


def test_what_both_orders_have_beats_the_first_of_either() -> None:
    assert fuse_rankings([["words", "both"], ["meaning", "both"]]) == ["both", "words", "meaning"]


def test_of_two_that_stand_alike_the_one_of_the_earlier_order_comes_first() -> None:
    assert fuse_rankings([["b"], ["a"]]) == ["b", "a"]
    assert fuse_rankings([["a"], ["b"]]) == ["a", "b"]


def test_a_text_says_a_question_whose_words_stand_in_it_whole_and_together() -> None:
    assert contains_phrase("Blue WHALE", "a blué whale, there")
    assert contains_phrase("whale", "the blue whale")
    for text in ("blue whales", "whale blue", "blue big whale", "", "blue"):
        assert not contains_phrase("blue whale", text)
    assert not contains_phrase("!!!", "!!!")


@given(st.text("ab ", max_size=6), st.lists(st.text("ab ", max_size=12), max_size=6))
def test_what_says_the_question_is_ahead_by_words_too(query: str, texts: list[str]) -> None:
    order = rank_texts(query, [(at, text, at) for at, text in enumerate(texts)])
    assert {at for at, text in enumerate(texts) if contains_phrase(query, text)} <= set(order)
