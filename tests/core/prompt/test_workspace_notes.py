"""Workspace notes in a prompt, for every combination of attached workspaces."""

from __future__ import annotations

from datetime import date
from itertools import product
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carrel.core.identifiers import Path
from carrel.core.prompt.assembly import (
    PromptDocument,
    build_prompt,
    memory_workspace_ids,
    prompt_paths,
)
from carrel.core.prompt.blocks import BlockStatus
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.workspace_notes import WorkspaceNote, WorkspaceNotes
from carrel.core.runs import Audience

ALL: Final = ("bash", "edit", "glob", "grep", "read", "write")
NOTES: Final = WorkspaceNote(
    "notes", "ws_1", "fs-1", "For <all>\n of us.", writable=True, notes_enabled=True
)
DOCS: Final = WorkspaceNote("docs", "ws_2", "fs-2", "", writable=False, notes_enabled=True)
BOTH: Final = PromptInputs(
    Audience.MAIN, date(2026, 4, 24), workspace_notes=WorkspaceNotes((NOTES, DOCS), ALL)
)
MEMORIES: Final = {
    "ws_1": PromptDocument(b"we like green", "workspace", 1),
    "ws_2": PromptDocument(b"page one", "workspace", 7),
}
SOUL: Final = {Path("SOUL.md"): PromptDocument(b"brisk", "agent", 1)}


def test_each_workspace_has_its_own_memory_and_every_workspace_is_listed() -> None:
    prompt = build_prompt(SOUL, BOTH, MEMORIES)
    assert (
        prompt.text
        == """\
# SOUL
brisk

# MEMORY — notes
we like green

# MEMORY — docs
page one

<workspace>
Files that you share with others are in these workspaces:
- notes (default) [fs-1]: For &lt;all> of us.
- docs (read-only) [fs-2]
In each of them you can use read and glob; paths are relative to its root.
You can also use write, edit, grep and bash there, but not in a read-only one.
Select one with `workspace`; without it the default is used.
Write lasting facts to MEMORY.md at the root of a workspace and plans to TASKS.md beside it; both \
are ordinary files. MEMORY.md is part of your prompt.
</workspace>"""
    )
    blocks = {block.path: (block.name, block.source, block.version) for block in prompt.blocks}
    assert blocks["ws_2/MEMORY.md"] == ("MEMORY — docs", "workspace", 7)
    assert blocks["<workspace>"] == ("WORKSPACES", None, None)


def test_a_read_only_workspace_mentions_only_reading_tools() -> None:
    inputs = replace(BOTH, workspace_notes=WorkspaceNotes((DOCS,), ("glob", "read")))
    text = build_prompt({}, inputs).text
    assert "- docs (default) (read-only) [fs-2]" in text
    assert "read and glob" in text
    for word in ("MEMORY", "TASKS", "write", "edit", "grep", "bash", "`workspace`"):
        assert word not in text


def test_a_tool_that_the_agent_lacks_is_not_mentioned() -> None:
    text = build_prompt(
        {}, replace(BOTH, workspace_notes=WorkspaceNotes((NOTES,), ("bash", "read")))
    ).text
    assert "you can use read;" in text
    assert "You can also use bash there." in text
    for word in ("glob", "grep", "write", "edit", "MEMORY"):
        assert word not in text
    assert build_prompt({}, replace(BOTH, workspace_notes=WorkspaceNotes((NOTES,), ()))).text == ""


def test_the_block_is_omitted_only_if_all_notes_are_disabled_and_memory_is_always_loaded() -> None:
    for notes, docs in product((False, True), repeat=2):
        pair = (replace(NOTES, notes_enabled=notes), replace(DOCS, notes_enabled=docs))
        text = build_prompt(
            {}, replace(BOTH, workspace_notes=WorkspaceNotes(pair, ALL)), MEMORIES
        ).text
        assert ("<workspace>" in text) == (notes or docs)
        assert "we like green" in text
        assert "page one" in text
        if notes or docs:
            assert "- notes (default)" in text
            assert "- docs (read-only)" in text


def test_a_shared_prompt_lists_the_workspaces_without_their_memory() -> None:
    inputs = replace(BOTH, mode=Audience.SHARED)
    assert memory_workspace_ids(inputs) == ()
    prompt = build_prompt(SOUL, inputs, MEMORIES)
    assert "green" not in prompt.text
    assert "page one" not in prompt.text
    assert "# MEMORY" not in prompt.text
    assert "shown MEMORY.md" not in prompt.text
    assert "- docs (read-only) [fs-2]" in prompt.text
    reasons = {block.path: block.reason for block in prompt.blocks}
    assert reasons["ws_1/MEMORY.md"] == "private, and the audience is shared"


def test_a_workspace_attached_under_two_names_has_one_memory_block() -> None:
    twice = WorkspaceNotes((NOTES, replace(NOTES, name="again", writable=False)), ALL)
    text = build_prompt({}, replace(BOTH, workspace_notes=twice), MEMORIES).text
    assert text.count("we like green") == 1
    assert "- again (read-only)" in text
    assert twice.workspace_ids == ("ws_1",)


def test_a_missing_empty_or_binary_memory_has_no_block() -> None:
    for memories, reason in (
        ({}, "no such file"),
        ({"ws_1": PromptDocument(b" \n", "workspace", 1)}, "empty"),
        ({"ws_1": PromptDocument(b"\xff", "workspace", 1)}, "not text"),
        ({"ws_1": PromptDocument(None, "workspace", 1, "gone")}, "gone"),
    ):
        prompt = build_prompt({}, BOTH, memories)
        assert "# MEMORY — notes" not in prompt.text
        assert {b.path: b.reason for b in prompt.blocks}["ws_1/MEMORY.md"] == reason


def test_the_limits_apply_to_workspace_blocks() -> None:
    long = {"ws_1": PromptDocument(b"x" * 5000, "workspace", 1)}
    cut = build_prompt({}, replace(BOTH, file_chars=1000), long)
    assert "x" * 900 in cut.text
    assert "x" * 1001 not in cut.text
    statuses = {block.path: block.status for block in cut.blocks}
    assert (statuses["ws_1/MEMORY.md"], statuses["<workspace>"]) == (
        BlockStatus.TRUNCATED,
        BlockStatus.INCLUDED,
    )
    full = build_prompt({}, replace(BOTH, prompt_chars=1000), long)
    assert len(full.text) <= 1000
    [block] = [block for block in full.blocks if block.path == "<workspace>"]
    assert (block.status, block.text) == (BlockStatus.OMITTED, "")
    assert "of the 1000 in total" in block.reason


def test_the_agents_own_memory_is_separate_from_workspace_memories() -> None:
    own = {Path("MEMORY.md"): PromptDocument(b"mine alone", "agent", 1)}
    text = build_prompt(own, BOTH, MEMORIES).text
    assert text.index("# MEMORY\nmine alone") < text.index("# MEMORY — notes\nwe like green")
    assert prompt_paths(BOTH).count(Path("MEMORY.md")) == 1


words = st.text(max_size=30)
attached = st.builds(WorkspaceNote, words, words, words, words, st.booleans(), st.booleans())
workspace_notes = st.builds(
    WorkspaceNotes,
    st.lists(attached, min_size=1, max_size=32).map(tuple),
    st.lists(st.sampled_from(ALL), unique=True).map(tuple),
)


@given(workspace_notes, st.sampled_from(Audience))
def test_workspace_notes_round_trip_through_run_variables(
    notes: WorkspaceNotes, mode: Audience
) -> None:
    inputs = replace(BOTH, mode=mode, workspace_notes=notes)
    variables = {**inputs.to_run_variables(), "mine": "prompt"}
    assert all(PromptInputs.is_reserved(name) for name in inputs.to_run_variables())
    assert PromptInputs.from_run_variables(variables, mode, date.min) == inputs
    assert build_prompt(
        {}, PromptInputs.from_run_variables(variables, mode, date.min)
    ) == build_prompt({}, inputs)


@given(workspace_notes, st.sampled_from(Audience))
def test_no_description_can_end_the_block_or_start_a_line(
    notes: WorkspaceNotes, mode: Audience
) -> None:
    plain = [replace(note, name="n", namespace="fs") for note in notes.attached]
    rendered = replace(notes, attached=tuple(plain)).render(mode)
    without = [replace(note, description="") for note in plain]
    bare = replace(notes, attached=tuple(without)).render(mode)
    assert rendered.count("<") == bare.count("<")
    assert len(rendered.splitlines()) == len(bare.splitlines())
