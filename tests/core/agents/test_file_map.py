"""The map: one block of inert lines, and not a byte changed around it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carrel.core.agents.file_map import (
    BLOCK_END,
    BLOCK_START,
    MAX_FILES,
    MAX_PEERS,
    MapEntry,
    PeerAgent,
    can_delegate_to,
    render_map,
    replace_map,
    summarize,
    without_map,
)
from carrel.core.identifiers import Path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Soul\n\nBrisk.", "Soul"),
        ("\ufeff\n\n## Soul ##\n", "Soul"),
        ("Brisk and kind. Never late.", "Brisk and kind."),
        ("Soul\n====\n", "Soul"),
        ("no full stop", "no full stop"),
        ("- first. second.", "first."),
        ("> quoted! more", "quoted!"),
        ("```\n# code\n```\n# Soul", "Soul"),
        ("<!-- note\nmore -->\n# Soul", "Soul"),
        ("---\ntitle: x\n---\n# Soul", "Soul"),
        ("---\n\n# Soul", "Soul"),
        ("***\n# Soul", "Soul"),
        ("# {{AGENT_NAME}}'s soul", "agent name's soul"),
        ("# {{UNKNOWN}}", "{{UNKNOWN}}"),
        ("#\n# Soul", "Soul"),
        ("", ""),
        ("\n \n", ""),
        ("x" * 200, "x" * 119 + "…"),
    ],
)
def test_a_file_is_about_its_first_heading_or_sentence(text: str, found: str) -> None:
    assert summarize(text.encode()) == found


@pytest.mark.parametrize("text", ["<!--" * 9_999, "# " + " #" * 9_999, "#" * 9_999, "> " * 9_999])
def test_no_text_takes_long_to_tell_of(text: str) -> None:
    assert len(summarize(text.encode())) <= 120


def test_what_is_no_text_is_about_nothing() -> None:
    assert summarize(b"\xff\x00") == ""


@pytest.mark.parametrize(
    ("patterns", "slug", "may"),
    [
        ([], "anybody", True),
        (["ann"], "ann", True),
        (["ann"], "anna", False),
        (["ops-*"], "ops-ann", True),
        (["ops-*"], "law-cy", False),
        (["*"], "ann", True),
        (["a*n*n"], "ann", True),
        (["an*nn"], "ann", False),
        (["*-*-x"], "a-b-x", True),
        (["a.*"], "ann", False),
        ([""], "ann", False),
        ([5, None], "ann", False),
        (["law", "ann"], "ann", True),
    ],
)
def test_whom_an_agent_may_delegate_to(patterns: list[object], slug: str, may: bool) -> None:
    assert can_delegate_to(patterns, slug) is may


def test_the_tree_tells_folders_as_they_are_entered() -> None:
    paths = ["a.md", "b/c/d.md", "b/c/e.md", "b/f.md", "g/c/h.md"]
    told = render_map([MapEntry(Path(path), path[-4]) for path in paths], [PeerAgent("ann", "Ann")])
    assert told.split("\n") == [
        *(BLOCK_START, "", "## Files", "", "- a.md: a", "- b/", "  - c/", "    - d.md: d"),
        *("    - e.md: e", "  - f.md: f", "- g/", "  - c/", "    - h.md: h"),
        *("", "## Peers", "", "- ann: Ann", "", BLOCK_END),
    ]


def test_a_map_stays_short_however_much_there_is() -> None:
    deep = Path("/".join(["d"] * 400) + "/x.md")
    places = [MapEntry(Path(f"{n:05}.md"), "x" * 500) for n in range(9_999)] + [MapEntry(deep)]
    told = render_map(places, [PeerAgent(f"p{n}", "P") for n in range(999)])
    assert told.count("\n") < MAX_FILES + MAX_PEERS + 20
    assert f"- … and {10_000 - MAX_FILES} more files" in told.split("\n")
    assert len(render_map([MapEntry(deep)], [])) < 2_000


@pytest.mark.parametrize("before", ["> ", "    ", "x ", "- "])
def test_an_example_of_a_block_is_none(before: str) -> None:
    text = f"{before}{BLOCK_START}\n{before}mine\n{before}{BLOCK_END}\n"
    fenced = f"```\n{BLOCK_START}\nmine\n{BLOCK_END}\n```\n"
    for file in (text, fenced):
        assert replace_map(file, render_map([], [])).startswith(file)
        assert without_map(file) == file


pieces = st.sampled_from(
    [
        *(
            BLOCK_START,
            BLOCK_END,
            f"> {BLOCK_START}",
            f"    {BLOCK_START}",
            f"{BLOCK_END} ",
            "```",
            "~~~",
            "> ```",
        ),
        *("# Head", "prose.", "", "- item", "---", "- ```", f"x {BLOCK_START}", "<!-- c -->"),
    ]
)
files = st.lists(pieces, max_size=10).flatmap(
    lambda some: st.sampled_from(["\n", "\r\n", "\r"]).flatmap(
        lambda turn: st.sampled_from(["", "\ufeff"]).map(lambda mark: mark + turn.join(some))
    )
)
words = st.text(max_size=20) | st.sampled_from(
    [BLOCK_START, BLOCK_END, "{{AGENT_NAME}}", "```", "a\nb"]
)
names = st.sampled_from(["a.md", "b/c.md", "b/{{HUMAN_NAME}}.md", f"{'`' * 3}.md", "<!-- x -->"])
maps = st.builds(
    render_map,
    st.lists(st.builds(MapEntry, names.map(Path), words), max_size=4),
    st.lists(st.builds(PeerAgent, st.just("ann"), words), max_size=3),
)


@given(file=files, first=maps, second=maps)
@example(file="```", first=render_map([], []), second=render_map([], []))
@example(file=BLOCK_START, first=render_map([], []), second=render_map([], []))
@example(
    file=f"{BLOCK_START}\n```\n{BLOCK_END}", first=render_map([], []), second=render_map([], [])
)
def test_only_the_block_changes_and_twice_is_once(file: str, first: str, second: str) -> None:
    once = replace_map(file, first)
    assert replace_map(once, first) == once
    assert without_map(replace_map(once, second)) == without_map(once)
    assert replace_map(replace_map(once, second), first) == once
    assert _kept(without_map(file), without_map(once))


def _kept(before: str, after: str) -> bool:
    """Whether all that was there is there to the byte, with nothing but line ends around it."""
    mark = "\ufeff" if before.startswith("\ufeff") else ""
    body = before.removeprefix(mark)
    inner = after.removeprefix(mark)
    at = inner.find(body)
    return after.startswith(mark) and at >= 0 and not inner.replace(body, "", 1).strip("\r\n")


@given(file=files, block=maps)
def test_a_file_is_about_the_same_with_its_map_and_without(file: str, block: str) -> None:
    once = replace_map(file, block)
    assert summarize(without_map(replace_map(once, block)).encode()) == summarize(
        without_map(once).encode()
    )
    assert summarize(without_map(once).encode()) == summarize(without_map(file).encode())


@given(block=maps)
def test_no_line_of_a_map_acts(block: str) -> None:
    lines = block.split("\n")
    assert (lines[0], lines[-1]) == (BLOCK_START, BLOCK_END)
    assert (block.count(BLOCK_START), block.count(BLOCK_END)) == (1, 1)
    assert "{{" not in block
    assert "```" not in block
    assert len(block.splitlines()) == len(lines)
    for line in lines[1:-1]:
        assert not line or line.startswith("## ") or line.lstrip(" ").startswith("- ")
