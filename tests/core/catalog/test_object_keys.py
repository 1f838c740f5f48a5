"""Keys of objects: none leads elsewhere, and those that bar one another are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.catalog.object_keys import nested_keys, parse_segments
from carrel.core.errors import ValidationError

keys = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@given(st.text())
def test_a_key_is_its_segments_and_none_of_them_goes_up(text: str) -> None:
    try:
        parts = parse_segments(text)
    except ValidationError:
        return
    assert "/".join(parts) == text
    assert not {"", ".", ".."} & set(parts)


@pytest.mark.parametrize("text", ["", "/a", "a/", "a//b", ".", "a/../b", "a\\b", "a\0", "\ud800"])
def test_what_could_lead_elsewhere_is_no_key(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_segments(text)


@given(st.sets(keys))
def test_without_those_beneath_others_every_key_can_be_a_file(found: set[str]) -> None:
    barred = nested_keys(found)
    left = found - barred
    assert not any(one.startswith(f"{other}/") for one in left for other in left)
    assert all(any(one.startswith(f"{other}/") for other in left) for one in barred)
