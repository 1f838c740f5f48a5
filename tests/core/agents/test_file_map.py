"""The map block in AGENTS.md: inert lines, with every byte around them unchanged."""

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
    ("text", "summary"),
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
        ("plan for Q4. More.", "plan for Q4."),
        ("see part 2) now. More.", "see part 2) now."),
        ("a - b * c + d. More.", "a - b * c + d."),
        ("4. fourth. More.", "fourth."),
        ("Version 1.5 is out. More.", "Version 1.5 is out."),
        ('He said "stop." More.', 'He said "stop."'),
        ("One sentence\n  on two lines. More.", "One sentence on two lines."),
        ("- first\n- second.", "first"),
        ("before\n```\ncode\n```\nafter.", "before"),
        ("今日は晴れ。明日は雨。", "今日は晴れ。"),
    ],
)
def test_a_summary_is_the_first_heading_or_sentence(text: str, summary: str) -> None:
    assert summarize(text.encode()) == summary


sentence_words = st.text(st.sampled_from("aZ4é字-*+)(.,:'"), min_size=1, max_size=6)
sentences = (
    st.lists(sentence_words, min_size=1, max_size=12)
    .map(lambda words: "So " + " ".join(word.rstrip(".)'*") or "x" for word in words))
    .filter(lambda text: len(text) < 119)
)


@given(sentence=sentences, end=st.sampled_from(".!?"), rest=st.text(max_size=40))
@example(sentence="plan for Q4", end=".", rest="More.")
def test_a_summary_is_the_literal_first_sentence(sentence: str, end: str, rest: str) -> None:
    assert summarize(f"{sentence}{end} {rest}".encode()) == sentence + end


@given(sentence=sentences, breaks=st.integers(0, 3))
def test_a_sentence_on_several_lines_is_shown_on_one(sentence: str, breaks: int) -> None:
    words = sentence.split(" ")
    if any(word[0] in "-*+4" for word in words):
        return
    text = " ".join(words[: len(words) - breaks]) + "\n" + "\n".join(words[len(words) - breaks :])
    assert summarize(f"{text.strip()}. More.".encode()) == f"{sentence}."


@given(text=st.text(max_size=400) | st.text(st.sampled_from("a4 .-*+#>\n\r\t)"), max_size=60))
def test_a_summary_is_one_short_line_of_the_text(text: str) -> None:
    summary = summarize(text.encode())
    assert len(summary) <= 120
    assert len(summary.splitlines()) <= 1
    flat, flat_summary = (" ".join(t.replace(">", " ").split()) for t in (text, summary))
    assert "<!--" in text or "{{" in text or flat_summary.removesuffix("…") in flat


@pytest.mark.parametrize("text", ["<!--" * 9_999, "# " + " #" * 9_999, "#" * 9_999, "> " * 9_999])
def test_a_hostile_text_gets_a_short_summary(text: str) -> None:
    assert len(summarize(text.encode())) <= 120


def test_a_binary_file_has_an_empty_summary() -> None:
    assert summarize(b"\xff\x00") == ""


@pytest.mark.parametrize(
    ("patterns", "slug", "allowed"),
    [
        ([], "any-agent", True),
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
def test_delegation_patterns_allow_matching_slugs_only(
    patterns: list[object], slug: str, allowed: bool
) -> None:
    assert can_delegate_to(patterns, slug) is allowed


def test_the_map_lists_each_folder_once_above_its_files() -> None:
    paths = ["a.md", "b/c/d.md", "b/c/e.md", "b/f.md", "g/c/h.md"]
    block = render_map(
        [MapEntry(Path(path), path[-4]) for path in paths], [PeerAgent("ann", "Ann")]
    )
    assert block.split("\n") == [
        *(BLOCK_START, "", "## Files", "", "- a.md: a", "- b/", "  - c/", "    - d.md: d"),
        *("    - e.md: e", "  - f.md: f", "- g/", "  - c/", "    - h.md: h"),
        *("", "## Peers", "", "- ann: Ann", "", BLOCK_END),
    ]


def test_the_map_names_private_folders_and_none_of_their_files() -> None:
    paths = [
        "MEMORY.md",
        "Memory/b.md",
        "memory/a.md",
        "memory/c/d.md",
        "notes.md",
        "notes/a.md",
        "z",
    ]
    block = render_map([MapEntry(Path(path), "") for path in paths], [])

    lines = [line for line in block.splitlines() if line.lstrip().startswith("- ")]
    assert lines == ["- MEMORY.md", "- Memory/", "- memory/", "- notes.md", "- notes/", "- z"]


def test_a_map_of_many_files_and_peers_is_truncated() -> None:
    deep = Path("/".join(["d"] * 400) + "/x.md")
    entries = [MapEntry(Path(f"{n:05}.md"), "x" * 500) for n in range(9_999)] + [MapEntry(deep)]
    block = render_map(entries, [PeerAgent(f"p{n}", "P") for n in range(999)])
    assert block.count("\n") < MAX_FILES + MAX_PEERS + 20
    assert f"- … and {10_000 - MAX_FILES} more files" in block.split("\n")
    assert len(render_map([MapEntry(deep)], [])) < 2_000


@pytest.mark.parametrize("prefix", ["> ", "    ", "x ", "- "])
def test_a_quoted_or_fenced_block_is_not_replaced(prefix: str) -> None:
    text = f"{prefix}{BLOCK_START}\n{prefix}mine\n{prefix}{BLOCK_END}\n"
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
    lambda parts: st.sampled_from(["\n", "\r\n", "\r"]).flatmap(
        lambda line_end: st.sampled_from(["", "\ufeff"]).map(lambda bom: bom + line_end.join(parts))
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
def test_replacing_the_map_changes_only_the_block_and_is_idempotent(
    file: str, first: str, second: str
) -> None:
    once = replace_map(file, first)
    assert replace_map(once, first) == once
    assert without_map(replace_map(once, second)) == without_map(once)
    assert replace_map(replace_map(once, second), first) == once
    assert _contains_unchanged(without_map(file), without_map(once))


def _contains_unchanged(before: str, after: str) -> bool:
    """Whether after is before, byte for byte, with only line ends added around it."""
    bom = "\ufeff" if before.startswith("\ufeff") else ""
    body = before.removeprefix(bom)
    inner = after.removeprefix(bom)
    position = inner.find(body)
    return after.startswith(bom) and position >= 0 and not inner.replace(body, "", 1).strip("\r\n")


@given(file=files, block=maps)
def test_the_summary_is_the_same_with_and_without_a_map(file: str, block: str) -> None:
    once = replace_map(file, block)
    assert summarize(without_map(replace_map(once, block)).encode()) == summarize(
        without_map(once).encode()
    )
    assert summarize(without_map(once).encode()) == summarize(without_map(file).encode())


@given(block=maps)
def test_every_map_line_is_a_heading_or_a_list_item(block: str) -> None:
    lines = block.split("\n")
    assert (lines[0], lines[-1]) == (BLOCK_START, BLOCK_END)
    assert (block.count(BLOCK_START), block.count(BLOCK_END)) == (1, 1)
    assert "{{" not in block
    assert "```" not in block
    assert len(block.splitlines()) == len(lines)
    for line in lines[1:-1]:
        assert not line or line.startswith("## ") or line.lstrip(" ").startswith("- ")
