"""Validation of paths, slugs, ids and digests."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from carrel.core.errors import ValidationError
from carrel.core.identifiers import (
    Path,
    Scope,
    ScopeKind,
    digest,
    parse_identifier,
    parse_slug,
    parse_wire_path,
)

plain = st.text(st.characters(codec="utf-8", exclude_characters="/\\", exclude_categories=["Cc"]))
segments = plain.filter(lambda part: part not in {"", ".", ".."})
valid_paths = st.lists(segments, min_size=1, max_size=6).map("/".join)

HOSTILE = [
    *(
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        "//a",
        ".",
        "..",
        "./a",
        "a/.",
        "a/./b",
        "../a",
        "a/..",
        "a/../b",
    ),
    *("a\\b", "..\\a", "C:\\a", "a\0", "a\nb", "a\rb", "a\tb", "\x7f", "a\x85b", "\x1b[0m"),
    *("a/\0/b", "\ud800", "a/\udfff.md", "é\ud800"),
    *("a" * 256, "é" * 128, "a/" + "b" * 256, "/".join(["abcd"] * 206)),
]
FINE = [
    *("a", "a/b.md", ".hidden", "...", "a/..b", "a..", "a b", "é/ü.md", "日本語.md", "a:b", "-"),
    *("SOUL.md", "memory/2026-11-15.md", "a" * 255, "é" * 127, "/".join(["abc"] * 256)),
]


@given(valid_paths)
def test_parsing_a_path_is_idempotent(text: str) -> None:
    assume(len(unicodedata.normalize("NFC", text).encode()) <= 1024)
    assume(all(len(part.encode()) <= 255 for part in unicodedata.normalize("NFC", text).split("/")))
    path = Path(text)

    assert Path(path.text) == path
    assert path.text == unicodedata.normalize("NFC", text)
    assert str(path) == path.text
    assert path.name == path.text.split("/")[-1]


@given(st.text())
@example("a/b")
@example("..")
def test_a_parsed_path_has_no_parent_segments(text: str) -> None:
    try:
        path = Path(text)
    except ValidationError:
        return
    parts = path.text.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert len(path.text.encode()) <= 1024
    assert max(len(part.encode()) for part in parts) <= 255
    assert unicodedata.is_normalized("NFC", path.text)
    assert not any(unicodedata.category(c) == "Cc" or c == "\\" for c in path.text)


@given(valid_paths, st.sampled_from(["/", "\\", "\0", "\n", "\x7f", "\x80"]), st.data())
def test_a_path_with_an_invalid_character_is_refused(
    text: str, bad: str, data: st.DataObject
) -> None:
    parts = text.split("/")
    invalid = f"{text}{bad}" if data.draw(st.booleans()) else f"{bad}{text}"
    if bad != "/":
        position = data.draw(st.integers(0, len(parts[0])))
        invalid = f"{parts[0][:position]}{bad}{parts[0][position:]}"

    with pytest.raises(ValidationError):
        Path(invalid)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_paths_are_refused_with_a_short_message(text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Path(text)
    assert str(refused.value).isascii() or "…" in str(refused.value)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("text", FINE, ids=lambda text: ascii(text)[:20])
def test_ordinary_paths_are_accepted(text: str) -> None:
    assert Path(text).text == text


def test_two_normalizations_of_a_letter_are_the_same_path() -> None:
    assert Path("cafe\u0301.md") == Path("caf\u00e9.md")
    assert Path("\u212b") == Path("\u00c5")


@given(st.lists(valid_paths, min_size=2, max_size=5, unique=True))
def test_paths_sort_by_their_text(texts: list[str]) -> None:
    assume(all(len(text.encode()) <= 200 for text in texts))
    ordered = sorted(Path(text) for text in texts)

    assert [path.text for path in ordered] == sorted(path.text for path in ordered)


@pytest.mark.parametrize("text", ["a", "A.md", "memory/x_y-z.md", "9", "a" * 255])
def test_a_path_allowed_by_the_protocol_is_accepted_on_the_wire(text: str) -> None:
    assert parse_wire_path(text) == Path(text)
    assert Path(text).fits_wire


@pytest.mark.parametrize(
    "text", [".hidden", "_a", "-a", "é", "a b", "a:b", "a%2Fb", "a/../b", "/a", "a//b", "a\n", ""]
)
def test_a_path_not_allowed_by_the_protocol_is_refused_on_the_wire(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_wire_path(text)


@given(st.binary(), st.binary())
def test_digests_are_equal_only_for_equal_content(first: bytes, second: bytes) -> None:
    assert (digest(first) == digest(second)) == (first == second)
    assert len(digest(first)) == len("sha256:") + 64


def test_a_digest_is_the_hex_sha256() -> None:
    assert digest(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True))
def test_a_valid_slug_is_returned_unchanged(text: str) -> None:
    assert parse_slug(text) == text


@pytest.mark.parametrize("text", ["", "-a", "a-", "A", "a_b", "a.b", "é", "a" * 64, "a\n", "a b"])
def test_an_invalid_slug_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_slug(text)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", fullmatch=True))
def test_a_valid_id_is_returned_unchanged(text: str) -> None:
    assert parse_identifier(text) == text


@pytest.mark.parametrize("text", ["", ".", "..", "-a", "_a", "a/b", "a b", "é", "a" * 129, "a\n"])
def test_an_invalid_id_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_identifier(text)


def test_scopes_of_a_stack_have_different_tags_in_every_tenant() -> None:
    scopes = [Scope("acme", kind, name) for kind in ScopeKind for name in ("x", "y")]

    assert len({scope.tag for scope in scopes}) == len(scopes)
    assert Scope("globex", ScopeKind.AGENT, "x").tag == Scope("acme", ScopeKind.AGENT, "x").tag
