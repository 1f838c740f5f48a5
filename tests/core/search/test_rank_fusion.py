"""Fusing several rankings into one."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.bm25 import rank_texts
from carrel.core.search.full_text import contains_phrase
from carrel.core.search.rank_fusion import fuse_rankings

ORDER = st.lists(st.integers(0, 30), unique=True)


@given(st.lists(ORDER, max_size=4), ORDER)
def test_every_key_appears_once_and_the_leading_keys_stay_first(
    orders: list[list[int]], first: list[int]
) -> None:
    fused = fuse_rankings(orders, first)
    assert sorted(fused) == sorted({*first, *(key for order in orders for key in order)})
    assert fused[: len(first)] == first
    assert fused == fuse_rankings(orders, first)


@given(ORDER, st.integers(0, 5))
def test_a_single_ranking_is_unchanged(order: list[int], leading: int) -> None:
    assert (
        fuse_rankings([order]) == fuse_rankings([order, []]) == fuse_rankings([[], order]) == order
    )
    assert fuse_rankings([order, []], order[:leading]) == order
    assert fuse_rankings([order, order]) == order


@given(ORDER, ORDER)
def test_a_key_ahead_in_some_ranking_is_ahead_in_the_fusion(
    first: list[int], second: list[int]
) -> None:
    scores = [{key: -index for index, key in enumerate(order)} for order in (first, second)]
    absent = -1000
    for ahead, behind in combinations(fuse_rankings([first, second]), 2):
        relevant = [score for score in scores if ahead in score or behind in score]
        assert any(score.get(ahead, absent) > score.get(behind, absent) for score in relevant)


def test_a_key_in_both_rankings_beats_the_first_of_either() -> None:
    assert fuse_rankings([["words", "both"], ["meaning", "both"]]) == ["both", "words", "meaning"]


def test_equal_keys_follow_the_order_of_the_rankings() -> None:
    assert fuse_rankings([["b"], ["a"]]) == ["b", "a"]
    assert fuse_rankings([["a"], ["b"]]) == ["a", "b"]


def test_a_phrase_matches_complete_adjacent_words_only() -> None:
    assert contains_phrase("Blue WHALE", "a blué whale, there")
    assert contains_phrase("whale", "the blue whale")
    for text in ("blue whales", "whale blue", "blue big whale", "", "blue"):
        assert not contains_phrase("blue whale", text)
    assert not contains_phrase("!!!", "!!!")


@given(st.text("ab ", max_size=6), st.lists(st.text("ab ", max_size=12), max_size=6))
def test_a_text_with_the_phrase_is_ranked_for_its_terms(query: str, texts: list[str]) -> None:
    hits = rank_texts(query, [(index, text, index) for index, text in enumerate(texts)])
    order = [hit.key for hit in hits]
    assert {index for index, text in enumerate(texts) if contains_phrase(query, text)} <= set(order)
