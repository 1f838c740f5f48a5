"""Object keys: no path escapes, and keys nested under other keys are detected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.catalog.object_keys import nested_keys, parse_segments
from carrel.core.errors import ValidationError

keys = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@given(st.text())
def test_a_parsed_key_has_no_empty_or_parent_segments(text: str) -> None:
    try:
        parts = parse_segments(text)
    except ValidationError:
        return
    assert "/".join(parts) == text
    assert not {"", ".", ".."} & set(parts)


@pytest.mark.parametrize("text", ["", "/a", "a/", "a//b", ".", "a/../b", "a\\b", "a\0", "\ud800"])
def test_a_key_that_could_escape_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_segments(text)


@given(st.sets(keys))
def test_without_nested_keys_no_key_is_a_prefix_of_another(keys_in_use: set[str]) -> None:
    nested = nested_keys(keys_in_use)
    remaining = keys_in_use - nested
    assert not any(key.startswith(f"{other}/") for key in remaining for other in remaining)
    assert all(any(key.startswith(f"{other}/") for other in remaining) for key in nested)
