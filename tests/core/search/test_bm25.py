"""Ranking texts for a query by BM25."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.search.bm25 import (
    MAX_COUNTED,
    MAX_POSTINGS,
    TermCount,
    TermStatistics,
    rank_texts,
    select_terms,
)
from carrel.core.search.full_text import parse_query

QUERY = parse_query("what is the thing unknown Luis eat")


def rank(query: str, *texts: str) -> list[str]:
    candidates = [(text, text, time) for time, text in enumerate(texts)]
    return [hit.key for hit in rank_texts(query, candidates)]


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


def test_a_rare_word_outweighs_many_common_ones() -> None:
    wordy = [f"one must not forget the thing that is number {n}" for n in range(400)]
    luis = "Luis is allergic to peanuts"
    assert rank("what is the thing Luis must not eat", *wordy, luis)[0] == luis


@pytest.mark.parametrize(
    ("query", "best", "other"),
    [
        (
            "where is the key of the shed",
            "The shed key is under the pot",
            "where is the end of the",
        ),
        ("¿dónde está la llave de la casa?", "La llave cuelga aquí", "¿dónde está la de la?"),
        ("wo ist der Schlüssel", "Schlüssel im Keller", "wo ist der"),
        ("钥匙在什么地方", "备用钥匙放在花盆下面", "这是什么, 在什么时候"),
        ("鍵はどこにありますか", "合鍵は植木鉢の下", "どこにありますか、それは"),
        ("กุญแจอยู่ที่ไหน", "กุญแจสำรองใต้กระถาง", "อยู่ที่ไหน"),
    ],
)
def test_function_words_weigh_next_to_nothing(query: str, best: str, other: str) -> None:
    scores = {hit.key: hit.score for hit in rank_texts(query, [(t, t, 0) for t in (other, best)])}
    assert scores[best] > 20 * scores.get(other, 0.0)


def test_a_score_is_the_share_of_the_known_query_that_a_text_answers() -> None:
    texts = ["the blue whale", "the whale", "what is the"]
    scores = [hit.score for hit in rank_texts("what is the blue whale", [(t, t, 0) for t in texts])]
    assert scores[0] > 0.9
    assert 0.1 < scores[1] < 0.9
    assert scores[2] < 0.01
    [[only]] = [rank_texts("is whale unicorn", [("x", "a whale", 0)])]
    assert only.score == 1.0, "no text has the other word"


def test_statistics_of_two_collections_are_added() -> None:
    files = TermStatistics(2, {"tea": TermCount(1, 2)})
    memories = TermStatistics(3, {"tea": TermCount(1, 1), "milk": TermCount(0, 1)})
    both = {"tea": TermCount(2, 3), "milk": TermCount(0, 1)}
    assert files.combine(memories) == TermStatistics(5, both)


def test_uncounted_candidates_are_added_to_the_statistics() -> None:
    texts = ["tea and milk", "tea", "milk"]
    candidates = [(text, text, 0) for text in texts]
    none = TermStatistics(0, {})
    assert rank_texts("tea milk", candidates, none, uncounted=3) == rank_texts(
        "tea milk", candidates
    )


def test_candidates_are_selected_by_the_rarest_terms_within_a_bound() -> None:
    counts = {
        "the": TermCount(MAX_COUNTED, MAX_COUNTED),
        "thing": TermCount(MAX_POSTINGS - 2, MAX_POSTINGS - 2),
        "luis": TermCount(1, 2),
        "eat": TermCount(0, 3),
        "unknown": TermCount(0, 0),
    }
    statistics = TermStatistics(50_000, counts)
    assert [weight.term for weight in select_terms(QUERY, statistics)] == ["luis", "eat"]
    luis, eat = select_terms(QUERY, statistics)
    assert luis.exact > luis.prefix > 0
    assert eat.prefix == pytest.approx(luis.prefix, rel=0.1)
    only = {"the": counts["the"], "unknown": counts["unknown"]}
    assert [item.term for item in select_terms(QUERY, TermStatistics(50_000, only))] == ["the"]


@given(st.lists(st.sampled_from(["tea", "teapot", "the", "milk", "is", "東京", "ชา"])))
def test_more_of_the_query_never_scores_less(words: list[str]) -> None:
    query = "the tea milk 東京 ชา"
    part, complete = " ".join(words), " ".join([*words, query])
    statistics = TermStatistics(9, {term: TermCount(1, 1) for term in parse_query(query).terms})
    scores = {
        hit.key: hit.score
        for hit in rank_texts(query, [("p", part, 0), ("w", complete, 0)], statistics)
    }
    assert scores["w"] >= scores.get("p", 0.0)
