"""No path leads out of a directory, and no two paths name the same file."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path as File

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carrel_client import UnsafePath
from carrel_client.local_directory.atomic_directory import TargetDirectory
from carrel_client.local_directory.path_safety import STATE_FILE, refuse_unsafe

SEGMENT = st.text(st.sampled_from("abAB.éÉe\u0301\u017f\u212a:\\\0 \u00ad"), min_size=0, max_size=4)
PATHS = st.lists(st.lists(SEGMENT, min_size=1, max_size=4).map("/".join), max_size=6)


def exact_names(names: Sequence[str]) -> str | None:
    """A file system that distinguishes all names."""
    return None


def folded_names(names: Sequence[str]) -> str | None:
    """A file system that distinguishes neither case nor Unicode normal forms."""
    folded: set[str] = set()
    for name in names:
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())
        if key in folded:
            return name
        folded.add(key)
    return None


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/etc/passwd", "a//b", "a/", "..", "../x", "a/../../x", "a/..", ".", "./a"),
        *("a/.", "a\\b", "..\\x", "a\0b", "a\nb", "a\x85", "a/\x1b[2J", "C:x", "c:/x", "C:\\x"),
        *("\ud800", STATE_FILE, f"{STATE_FILE}/x"),
    ],
    ids=ascii,
)
def test_path_that_would_escape_is_refused(path: str) -> None:
    with pytest.raises(UnsafePath):
        refuse_unsafe([path], exact_names)


@pytest.mark.parametrize(
    "paths",
    [["a", "a"], ["a", "a/b"], ["a/b", "a"], ["a/b/c", "a/b"], ["x", "a/b", "a/b/c"]],
    ids=str,
)
def test_path_that_is_file_and_directory_is_refused(paths: list[str]) -> None:
    with pytest.raises(UnsafePath):
        refuse_unsafe(paths, exact_names)


@pytest.mark.parametrize(
    "paths",
    [
        ["README.md", "readme.md"],
        ["é", "e\u0301"],
        ["notes/a.md", "Notes/b.md"],
        ["ß.md", "SS.md"],
        ["\u212a", "k"],
        ["A", "a/b"],
        [STATE_FILE.upper()],
    ],
    ids=ascii,
)
def test_names_are_refused_only_if_the_file_system_confuses_them(paths: list[str]) -> None:
    refuse_unsafe(paths, exact_names)
    with pytest.raises(UnsafePath):
        refuse_unsafe(paths, folded_names)


def test_ordinary_paths_are_accepted() -> None:
    paths = ["SOUL.md", "memory/lessons.md", "a b/ü ж.md", ".hidden", "...", "ab:c/d:e", "日本/本"]
    refuse_unsafe(paths, folded_names)


def test_similar_names_are_tried_together() -> None:
    names = [f"{number:020b}".translate({48: "a", 49: "A"}) for number in range(20_000)]
    batches: list[Sequence[str]] = []

    def note(names: Sequence[str]) -> None:
        batches.append(names)

    refuse_unsafe(names, note)

    assert [len(batch) for batch in batches] == [20_000]


@given(PATHS)
@example(["a/b", "A/c"])
def test_accepted_paths_stay_within_the_directory_and_distinct(paths: list[str]) -> None:
    try:
        refuse_unsafe(paths, folded_names)
    except UnsafePath:
        return
    root = "/somewhere/target"
    ends = [os.path.normpath(os.path.join(root, path)) for path in paths]
    assert all(end.startswith(root + "/") for end in ends)
    flat = [unicodedata.normalize("NFD", end).casefold() for end in ends]
    assert len(set(flat)) == len(flat)
    assert not any(inner.startswith(outer + "/") for inner in flat for outer in flat)


def test_clash_is_tried_on_the_file_system(tmp_path: File) -> None:
    place = TargetDirectory.at(tmp_path / "target")

    assert place.find_clash(["same", "other"]) is None
    assert place.find_clash(["same", "same"]) == "same"
    assert os.listdir(place.staging) == []
