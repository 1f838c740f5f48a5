"""Structured items of transcript entries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import PayloadTooLarge, ValidationError
from carrel.core.sessions.session import MAX_CONTENT_BYTES
from carrel.core.sessions.session_items import (
    MAX_ITEM_DEPTH,
    check_item_depth,
    encode_item,
    item_text,
)

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text("abc"), values),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_an_item_is_kept_as_it_is(item: Any) -> None:
    assert json.loads(encode_item(item)) == item


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("hello", "hello"),
        ({"role": "user", "content": "hello"}, "hello"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": {"parts": [{"text": "from ADK"}]}}, "from ADK"),
        (
            {"type": "function_call", "name": "weather", "arguments": '{"city":"Bonn"}'},
            'weather\n{"city":"Bonn"}',
        ),
        ({"type": "tool_use", "name": "get", "input": {"id": 7}}, 'get\n{"id":7}'),
        ({"type": "function_call_output", "call_id": "c", "output": "sunny"}, "sunny"),
        ({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "f\n{}"),
        ({"kind": "unknown"}, ""),
        ([1, None, True], ""),
    ],
)
def test_the_text_of_an_item_is_what_it_says(item: Any, text: str) -> None:
    assert item_text(item) == text


def test_a_deep_or_large_item_is_refused() -> None:
    item: Any = "x"
    for _ in range(MAX_ITEM_DEPTH - 1):
        item = [item]
    check_item_depth(item)
    with pytest.raises(ValidationError, match="nested"):
        check_item_depth([item])
    with pytest.raises(PayloadTooLarge):
        encode_item("x" * MAX_CONTENT_BYTES)


@pytest.mark.parametrize("item", ["\ud800", {"\ud800": 1}])
def test_an_item_that_is_no_interchangeable_json_is_refused(item: Any) -> None:
    with pytest.raises(ValidationError, match="item"):
        encode_item(item)
