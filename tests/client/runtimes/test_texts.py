"""Keys as paths and texts as memories, for the adapters of runtimes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.identifiers import Path
from carrel_client.runtimes.key_paths import (
    directory_of_prefix,
    key_to_path,
    name_to_segment,
    path_to_key,
    segment_to_name,
)
from carrel_client.runtimes.memory_texts import split_memory

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=25)


@given(st.lists(TEXTS, min_size=1, max_size=4).map("/".join))
def test_every_key_is_a_path_and_comes_back(key: str) -> None:
    path = key_to_path(key)
    assert Path(path).text == path
    assert path_to_key(path) == key


@given(TEXTS)
def test_every_name_is_one_segment_and_comes_back(name: str) -> None:
    segment = name_to_segment(name)
    assert "/" not in segment
    assert Path(segment).text == segment
    assert segment_to_name(segment) == name


@given(TEXTS, TEXTS)
def test_keys_with_a_prefix_are_in_its_directory(prefix: str, rest: str) -> None:
    assert key_to_path(prefix + rest).startswith(directory_of_prefix(prefix))


@pytest.mark.parametrize("key", ["a/b.md", ".hidden", "Ä ö/c-d_e.txt", "a+b=c,d"])
def test_usual_names_stay_as_they_are(key: str) -> None:
    assert key_to_path(key) == key


@pytest.mark.parametrize("key", ["x" * 256, "a\ud800"])
def test_name_that_no_path_can_have_is_refused(key: str) -> None:
    with pytest.raises(ValueError):
        key_to_path(key)


@given(st.text(max_size=200), st.integers(min_value=1, max_value=30))
def test_parts_of_a_text_have_its_words_in_order(text: str, limit: int) -> None:
    parts = split_memory(text, limit)
    assert all(0 < len(part) <= limit for part in parts)
    assert "".join(parts).replace(" ", "") == "".join(text.split())


def test_text_is_cut_between_words() -> None:
    assert split_memory("one two  three\nfour", 9) == ["one two", "three", "four"]
    assert split_memory("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]
    assert split_memory(" \n ") == []
