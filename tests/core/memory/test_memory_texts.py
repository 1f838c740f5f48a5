"""Texts of the tool `memory`: edits, listings, paths and passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.memory.memory_passages import PASSAGE_CHARS, split_passages
from carrel.core.memory.memory_paths import parse_memory_path
from carrel.core.memory.memory_texts import (
    format_size,
    insert_text,
    list_directory,
    replace_once,
    view_lines,
)
from carrel.core.overlay.file_classes import matches_any
from carrel.core.policy import DEFAULT_AGENT_WRITABLE

TEXTS = st.text(st.sampled_from("ab\r\n #-"), max_size=40)
NAMES = st.text(st.sampled_from("abM.*"), min_size=1, max_size=4)


@given(before=TEXTS, old=st.text(st.sampled_from("xy\n"), min_size=1, max_size=3), after=TEXTS)
def test_a_replacement_changes_one_place_or_nothing(before: str, old: str, after: str) -> None:
    content = before + old + after
    if content.find(old) != content.rfind(old):
        with pytest.raises(ValidationError, match="Multiple occurrences"):
            replace_once("f", content, old, "NEW")
        return
    changed, line = replace_once("f", content, old, "NEW")
    assert changed.replace("NEW", old) == content
    assert changed.split("\n")[line - 1].count("NEW") == 1


def test_lines_of_many_occurrences_are_listed_quickly() -> None:
    with pytest.raises(ValidationError, match=r"lines: 1\. Please"):
        replace_once("f", "a" * 2**20, "a", "b")
    with pytest.raises(ValidationError, match=r"lines: 1, 2, .*, 100, …\. Please"):
        replace_once("f", "a\n" * 2**19, "a", "b")
    with pytest.raises(NotFound):
        replace_once("f", "a" * 2**20, "b", "c")


@given(content=TEXTS, inserted=st.text(st.sampled_from("xy"), max_size=5), data=st.data())
def test_an_inserted_line_leaves_all_others(
    content: str, inserted: str, data: st.DataObject
) -> None:
    before = content.split("\n")[: -1 if content.endswith("\n") or not content else None]
    line = data.draw(st.integers(0, len(before)))
    after = insert_text(content, line, inserted + "\n")
    *lines, end = after.split("\n")
    assert end == ""
    assert lines[line] == inserted
    assert lines[:line] + lines[line + 1 :] == before


@given(content=TEXTS)
def test_a_view_shows_every_line_with_its_number(content: str) -> None:
    visible = view_lines("f", content)
    _, _, numbered = visible.text.partition(":\n")
    rows = [row.partition("\t") for row in numbered.split("\n")]
    assert [int(number) for number, _, _ in rows] == list(range(1, visible.lines + 1))
    assert "\n".join(line for _, _, line in rows) == content


@given(
    files=st.dictionaries(
        st.lists(NAMES, min_size=1, max_size=4).map("/".join), st.integers(0, 2**20), max_size=8
    )
)
def test_a_listing_has_two_levels_and_their_sizes(files: dict[str, int]) -> None:
    listed = {item.path: item.size for item in list_directory(files, ())}
    for path in listed:
        assert 1 <= len(path.rstrip("/").split("/")) <= 2
        assert not any(part.startswith(".") for part in path.split("/"))
    for path, size in files.items():
        parts = path.split("/")
        if len(parts) <= 2 and not any(part.startswith(".") for part in parts):
            assert listed[path] == size
    for path, size in listed.items():
        if path.endswith("/"):
            assert size == sum(n for name, n in files.items() if name.startswith(path))


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (5, "5B"), (1024, "1K"), (1536, "1.5K"), (2**20, "1M"), (3 * 2**30, "3G")],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.lists(st.sampled_from(["", ".", "..", "notes", "memory", "MEMORY.md", "x"]), max_size=6))
def test_a_path_stays_below_the_root_and_names_a_place_of_the_agent(segments: list[str]) -> None:
    text = "/".join(("/memories", *segments))
    try:
        parsed = parse_memory_path(text, DEFAULT_AGENT_WRITABLE)
    except ValidationError as error:
        assert "would escape" in str(error) and ".." in segments
        return
    if parsed.path is not None:
        below = Path(f"{parsed.path}/x")
        own = any(matches_any(path, DEFAULT_AGENT_WRITABLE) for path in (parsed.path, below))
        assert own or parsed.path.text.startswith("MEMORY.md/")
        assert ".." not in parsed.path.text.split("/")


@pytest.mark.parametrize(
    ("text", "writable", "path"),
    [
        ("/memories/ideas.md", DEFAULT_AGENT_WRITABLE, "memory/ideas.md"),
        ("/memories/memory/ideas.md", DEFAULT_AGENT_WRITABLE, "memory/ideas.md"),
        ("/memories/notes", DEFAULT_AGENT_WRITABLE, "notes"),
        ("/memories/MEMORY.md", DEFAULT_AGENT_WRITABLE, "MEMORY.md"),
        ("/memories/memory.md", DEFAULT_AGENT_WRITABLE, "memory/memory.md"),
        ("/memories/a/b.md", ("**",), "a/b.md"),
        ("/memories/notes/a.md", ("projects/*/plan.md",), "memory/notes/a.md"),
        ("/memories/projects/x", ("projects/*/plan.md",), "projects/x"),
    ],
)
def test_a_path_is_the_agents_own_or_below_memory(
    text: str, writable: tuple[str, ...], path: str
) -> None:
    assert parse_memory_path(text, writable).path == Path(path)


@given(TEXTS)
def test_passages_are_the_lines_of_a_text(text: str) -> None:
    lines = text.split("\n")
    last = 0
    for passage in split_passages(text):
        part = passage.text.split("\n")
        assert passage.line > last
        last = passage.line + len(part) - 1
        assert lines[passage.line - 1 : last] == part
    assert last <= len(lines)


def test_a_long_list_is_several_passages() -> None:
    line = "- " + "x" * 98
    passages = list(split_passages("# Facts #\n" + f"{line}\n" * 20 + "\n## Empty\n"))
    assert [passage.line for passage in passages] == [2, 10, 18, 23]
    assert [passage.heading for passage in passages] == ["Facts"] * 3 + ["Empty"]
    assert all(len(passage.text) < PASSAGE_CHARS + 110 for passage in passages)
