"""Any text as a segment of a path: reversible, accepted by the server's parser, and distinct."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.identifiers import Path
from carrel_client.runtimes.path_segments import MAX_BYTES, from_segment, to_segment

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
AWKWARD = [
    *("", ".", "..", "a/b", "a\\b", "%", "%2E", "a.b", "alice\n", "\x00", "e\u0301", "\u0301"),
    *(".\u0301", "\u1100\u1161", "a\u202eb", "\ufeff", " ", "*", "user_1", "é", "名前"),
]


@given(TEXTS)
def test_text_is_restored(text: str) -> None:
    assert from_segment(to_segment(text, suffix=".json"), suffix=".json") == text


@given(TEXTS)
def test_segment_is_a_valid_part_of_a_path_and_not_changed_by_it(text: str) -> None:
    path = f"store/{to_segment(text)}/{to_segment(text, suffix='.json')}"
    assert Path(path).text == path


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_is_restored(text: str) -> None:
    segment = to_segment(text)
    assert from_segment(segment) == text
    assert Path(f"a/{segment}").text == f"a/{segment}"


def test_texts_have_different_segments() -> None:
    assert len({to_segment(text) for text in AWKWARD}) == len(AWKWARD)


def test_ordinary_text_stays_readable() -> None:
    assert to_segment("user_42-é 名") == "user_42-é 名"
    assert to_segment("notes.md", suffix=".json") == "notes%2Emd.json"


def test_text_that_is_too_long_or_not_unicode_is_refused() -> None:
    assert len(to_segment("a" * MAX_BYTES)) == MAX_BYTES
    with pytest.raises(ValueError, match="too long"):
        to_segment("a" * MAX_BYTES, suffix=".json")
    with pytest.raises(ValueError, match="not valid Unicode"):
        to_segment("\ud800")
