"""Filters and namespaces of LangGraph stores, without LangGraph."""

from __future__ import annotations

from typing import Any

import pytest

from carrel_client.errors import InvalidResponse
from carrel_client.langgraph.item_documents import (
    ItemDocument,
    document_from_text,
    item_location,
    item_path,
    now,
)
from carrel_client.langgraph.item_queries import (
    best_similarity,
    check_filter,
    fits_filter,
    has_prefix,
    has_suffix,
    literal_prefix,
)

VALUE = {"price": 10, "name": "tea", "active": True, "user": {"a-b": "x"}, "tags": ["new"]}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, True),
        ({"price": 10}, True),
        ({"price": 10, "name": "coffee"}, False),
        ({"price": {"$gt": 9, "$lte": 10}}, True),
        ({"price": {"$lt": 10**100}}, True),
        ({"price": {"$gt": "9"}}, False),
        ({"price": {"$eq": float("nan")}}, False),
        ({"active": True}, True),
        ({"active": 1}, False),
        ({"user.a-b": "x"}, True),
        ({"user.missing": "x"}, False),
        ({"missing": {"$ne": 1}}, True),
        ({"tags": ["new"]}, True),
        ({"user": {"a-b": "x"}}, True),
    ],
)
def test_value_fits_conditions(conditions: Any, expected: bool) -> None:
    check_filter(conditions)
    assert fits_filter(VALUE, conditions) is expected


@pytest.mark.parametrize("key", ["a' OR '1'='1", "", "a b", "a)"])
def test_key_with_other_characters_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="Invalid filter key"):
        check_filter({key: 1})


def test_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Unsupported operator: \$in"):
        check_filter({"a": {"$in": [1]}})


def test_labels_match_whole_and_a_star_is_one_label() -> None:
    namespace = ("uid", "users", "alice")
    assert has_prefix(namespace, ("uid", "*", "alice"))
    assert has_suffix(namespace, ("alice",))
    assert not has_prefix(namespace, ("ui",))
    assert not has_suffix(namespace, ("*", "uid", "users", "alice"))
    assert literal_prefix(("uid", "*", "alice")) == ("uid",)


def test_most_similar_vector_counts() -> None:
    assert best_similarity([1, 0], [[0, 1], [2, 0]]) == pytest.approx(1)
    assert best_similarity([1, 0], []) is None
    assert best_similarity([0, 0], [[1, 0]]) == 0


def test_item_is_one_file_below_its_namespace() -> None:
    path = item_path("langgraph/store", ("users", "a/b"), "notes.md")
    assert path == "langgraph/store/users/a%2Fb/notes%2Emd.json"
    assert item_location("langgraph/store", path) == (("users", "a/b"), "notes.md")


def test_document_is_restored_with_its_vectors() -> None:
    document = ItemDocument({"a": "é"}, now(), ([0.5, -1.0],))
    restored = document_from_text("a.json", document.to_text())
    assert (restored.value, restored.created_at) == (document.value, document.created_at)
    assert [list(vector) for vector in restored.vectors] == [[0.5, -1.0]]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"value": 1, "createdAt": "never"}'])
def test_file_that_is_no_item_is_refused(text: str) -> None:
    with pytest.raises(InvalidResponse, match=r"a\.json is not an item"):
        document_from_text("a.json", text)
