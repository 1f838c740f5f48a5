"""Targets of commands: owners and paths as arguments."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.cli.targets import (
    Target,
    TargetError,
    TargetOwner,
    parse_file_target,
    parse_owner,
    parse_target,
)

FINN = TargetOwner("agents", "finn")


@pytest.mark.parametrize(
    ("text", "owner", "path"),
    [
        ("finn", FINN, ""),
        ("finn/", FINN, ""),
        ("agents/finn", FINN, ""),
        ("finn/SOUL.md", FINN, "SOUL.md"),
        ("finn/notes/2026-01-01.md", FINN, "notes/2026-01-01.md"),
        ("agents/finn/notes/", FINN, "notes"),
        ("agents/defaults/a.md", TargetOwner("agents", "defaults"), "a.md"),
        ("agents/agents/agents", TargetOwner("agents", "agents"), "agents"),
        ("templates/support", TargetOwner("templates", "support"), ""),
        ("templates/support/SOUL.md", TargetOwner("templates", "support"), "SOUL.md"),
        ("workspaces/ws_0a/b/c.txt", TargetOwner("workspaces", "ws_0a"), "b/c.txt"),
        ("defaults", TargetOwner("defaults"), ""),
        ("defaults/", TargetOwner("defaults"), ""),
        ("defaults/notes/a.md", TargetOwner("defaults"), "notes/a.md"),
        ("finn/cafe\u0301.md", FINN, "caf\u00e9.md"),
    ],
)
def test_owner_and_path_of_a_target_are_parsed(text: str, owner: TargetOwner, path: str) -> None:
    assert parse_target(text) == Target(owner, path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not start with a name"),
        ("/", "does not start with a name"),
        ("/SOUL.md", "does not start with a name"),
        ("agents", "which agent? agents/NAME"),
        ("templates/", "which template? templates/NAME"),
        ("workspaces//a.md", "does not start with a name"),
        ("finn/../bo/SOUL.md", "'..' segment"),
        ("finn/a//b", "empty segment"),
        ("finn//", "empty segment"),
        ("finn/a\\b", "backslash"),
        ("finn/a\x1b", "control character"),
        ("finn/a\udcff", "valid Unicode"),
    ],
)
def test_ambiguous_target_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TargetError, match=reason.replace("?", r"\?").replace("..", r"\.\.")):
        parse_target(text)


def test_file_target_needs_a_path_and_owner_target_has_none() -> None:
    with pytest.raises(TargetError, match="names no file: finn/PATH"):
        parse_file_target("finn")
    with pytest.raises(TargetError, match="expected only templates/support"):
        parse_owner("templates/support/SOUL.md")
    assert parse_owner("defaults") == TargetOwner("defaults")


NAMES = st.text("abcdefghijklmnopqrstuvwxyz-0123456789", min_size=1, max_size=9)
PLACES = st.one_of(
    st.builds(
        TargetOwner,
        st.sampled_from(["agents", "templates", "workspaces"]),
        NAMES | st.just("defaults"),
    ),
    st.just(TargetOwner("defaults")),
)
LETTERS = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="/\\")
SEGMENTS = (
    st.text(LETTERS, min_size=1, max_size=9)
    .filter(lambda text: text not in {".", ".."})
    .map(lambda text: unicodedata.normalize("NFC", text))
)


@given(owner=PLACES, segments=st.lists(SEGMENTS, max_size=3))
def test_printed_target_can_be_parsed(owner: TargetOwner, segments: list[str]) -> None:
    target = Target(owner, "/".join(segments))
    assert parse_target(str(target)) == target
