"""Item keys as paths: reversible, and none nested in another."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from carrel.core.errors import ValidationError, WorkspaceTooLarge
from carrel.core.identifiers import Path, digest
from carrel.core.items import (
    MAX_KEY_LENGTH,
    MAX_VALUE_BYTES,
    encode_item_value,
    item_from_head,
    item_media_type,
    item_path,
    key_from_path,
    parse_item_key,
    preview,
)
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Entry, Head

_CHARACTERS = st.characters(exclude_categories=("Cc", "Cs"))
_AWKWARD = st.sampled_from("/\\.~%+ -_aé😀\u0301\U0010ffff\u200b\ufeff")
KEYS = st.text(_CHARACTERS | _AWKWARD, min_size=1, max_size=MAX_KEY_LENGTH)


@given(KEYS)
@example("\U0010ffff" * MAX_KEY_LENGTH)
@example("~" * MAX_KEY_LENGTH)
@example("..")
@example(".")
@example("/")
@example("~x")
@example("~" + "A" * 255)
@example("e\u0301")
@example("\u0301")
@example("a" * MAX_KEY_LENGTH)
def test_a_key_round_trips_through_its_path(key: str) -> None:
    assert key_from_path(item_path(parse_item_key(key))) == key


@given(KEYS, KEYS)
@example("a", "a/b")
@example("é" * 150, "é" * 151)
@example("e\u0301", "é")
@example("A", "a")
def test_two_keys_have_two_paths_and_neither_is_a_parent_of_the_other(
    key: str, other_key: str
) -> None:
    path, other_path = item_path(key), item_path(other_key)
    assert (path == other_path) == (key == other_key)
    assert path not in other_path.parents
    assert other_path not in path.parents


@given(st.text(_CHARACTERS, min_size=150, max_size=200), st.text(_CHARACTERS, max_size=50))
def test_a_long_key_is_no_parent_of_a_key_with_its_prefix(key: str, suffix: str) -> None:
    assert item_path(key) not in item_path(key + suffix).parents


def test_a_plain_key_is_its_path() -> None:
    assert item_path("shopping list (May).json") == Path("shopping list (May).json")
    assert item_path("a/b") == Path("a%2Fb")


@pytest.mark.parametrize("invalid", ["", "x" * 257, "a\nb", "\0", "\x7f", "\x85", "a\ud800"])
def test_an_invalid_key_is_refused(invalid: str) -> None:
    with pytest.raises(ValidationError):
        parse_item_key(invalid)


def test_a_value_is_limited_in_bytes() -> None:
    assert len(encode_item_value("é" * (MAX_VALUE_BYTES // 2))) == MAX_VALUE_BYTES
    with pytest.raises(WorkspaceTooLarge):
        encode_item_value("é" * (MAX_VALUE_BYTES // 2) + "x")
    with pytest.raises(ValidationError):
        encode_item_value("\ud800")


def test_creator_and_creation_time_are_in_the_media_type() -> None:
    entry = Entry(Blob(digest(b"x"), 1), None, item_media_type("agt_1", 17))
    item = item_from_head(Head(item_path("a/b"), 3, 9, 42, entry), '"v3"')
    assert (item.key, item.created_by, item.created_at) == ("a/b", "agt_1", 17)
    assert (item.version, item.revision, item.updated_at) == (3, 9, 42)
    new = item_from_head(
        Head(item_path("k"), 1, 9, 42, replace(entry, type=item_media_type("agt_1"))), '"v1"'
    )
    assert (new.created_by, new.created_at, new.updated_at) == ("agt_1", 42, 42)


def test_a_preview_has_a_hundred_characters_and_an_ellipsis_if_cut() -> None:
    assert preview("é" * 100) == "é" * 100
    assert preview("é" * 101) == "é" * 100 + "..."
