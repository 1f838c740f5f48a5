"""Prompt assembly: order, limits and exclusions."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from carrel.core.errors import Conflict
from carrel.core.identifiers import Path
from carrel.core.prompt.assembly import (
    TRUNCATION_MARKER,
    DamagedPolicyFile,
    Prompt,
    PromptDocument,
    build_prompt,
    note_path,
    prompt_paths,
)
from carrel.core.prompt.blocks import BlockStatus
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.runs import Audience
from carrel.core.sessions.shared_session_visibility import POLICY_PATHS, SHARED_PATHS

DAY = date(2026, 4, 24)
MAIN = PromptInputs(Audience.MAIN, DAY)
SHARED = PromptInputs(Audience.SHARED, DAY)
TODAY, YESTERDAY = "notes/2026-04-24.md", "notes/2026-04-23.md"
NAMES = [
    *("PLATFORM.md", "GUARDRAILS.md", "CAPABILITIES.md", "IDENTITY.md", "SOUL.md", "USER.md"),
    *("AGENTS.md", TODAY, YESTERDAY, "MEMORY.md", "team/style.md"),
]
PRIVATE = ["USER.md", TODAY, YESTERDAY, "MEMORY.md", "team/style.md", "DREAMS.md"]


def documents_by_prefix(**texts: str) -> dict[Path, PromptDocument]:
    """Documents keyed by a prefix of their names."""
    return documents(
        {next(name for name in NAMES if name.startswith(k)): v for k, v in texts.items()}
    )


def documents(texts: dict[str, str]) -> dict[Path, PromptDocument]:
    return {Path(path): PromptDocument(text.encode(), "agent", 1) for path, text in texts.items()}


def reasons(prompt: Prompt) -> dict[str, tuple[str, str]]:
    return {block.path: (block.status, block.reason) for block in prompt.blocks}


ALL = documents({name: f"text of {name}" for name in NAMES} | {"IDENTITY.md": "- Name: Kate"})
FULL_PROMPT = """\
# PLATFORM
text of PLATFORM.md

# GUARDRAILS
text of GUARDRAILS.md

# CAPABILITIES
text of CAPABILITIES.md

# IDENTITY
name=Kate

# SOUL
text of SOUL.md

# USER
text of USER.md

# AGENTS
text of AGENTS.md

# RECENT NOTES
## 2026-04-24
text of notes/2026-04-24.md

## 2026-04-23
text of notes/2026-04-23.md

# MEMORY
text of MEMORY.md

# RULES — team/style.md
text of team/style.md"""


def test_the_main_prompt_has_every_block_in_order() -> None:
    prompt = build_prompt(ALL, replace(MAIN, extra_docs=("team/style.md",)))
    assert prompt.text == FULL_PROMPT
    assert {block.status for block in prompt.blocks} == {BlockStatus.INCLUDED}
    assert [block.path for block in prompt.blocks] == NAMES
    assert prompt.blocks[4].source == "agent"


def test_the_shared_prompt_has_only_policy_identity_soul_and_agents() -> None:
    prompt = build_prompt(ALL, replace(SHARED, extra_docs=("team/style.md", "SOUL.md")))
    assert [line for line in prompt.text.splitlines() if line.startswith("#")] == [
        *("# PLATFORM", "# GUARDRAILS", "# CAPABILITIES", "# IDENTITY", "# SOUL", "# AGENTS"),
    ]
    omitted = [block for block in prompt.blocks if block.status is BlockStatus.OMITTED]
    assert {block.path for block in omitted} == {
        *("USER.md", "skills/", "notes/", "MEMORY.md", "team/style.md", "SOUL.md"),
    }
    assert {(block.version, block.source, block.text) for block in omitted} == {(None, None, "")}
    assert set(prompt_paths(SHARED)) == SHARED_PATHS


def test_a_missing_or_blank_file_has_no_block_and_a_reason() -> None:
    prompt = build_prompt(
        documents_by_prefix(SOUL=" \n\t", IDENTITY="- Name: (pick)", AGENTS="\ufeff\n x \n"), MAIN
    )
    assert prompt.text == "# AGENTS\nx"
    statuses = reasons(prompt)
    assert statuses["SOUL.md"] == ("left out", "empty")
    assert statuses["USER.md"] == ("left out", "no such file")
    assert statuses["IDENTITY.md"][1] == "no name, emoji, vibe or creature"
    assert build_prompt({}, MAIN).text == ""


def test_yesterdays_note_alone_has_the_heading_too() -> None:
    assert (
        build_prompt(documents({YESTERDAY: "n"}), MAIN).text == "# RECENT NOTES\n## 2026-04-23\nn"
    )
    assert note_path(DAY - timedelta(days=1)) == Path(YESTERDAY)
    assert build_prompt({}, replace(MAIN, day=date.min)).text == ""


def test_a_file_at_its_limit_is_complete_and_a_longer_file_is_cut() -> None:
    inputs = replace(MAIN, file_chars=100)
    assert build_prompt(documents_by_prefix(SOUL="é" * 100), inputs).text == "# SOUL\n" + "é" * 100
    prompt = build_prompt(documents_by_prefix(SOUL="é" * 101), inputs)
    assert prompt.text == "# SOUL\n" + "é" * (100 - len(TRUNCATION_MARKER)) + "\n\n[truncated]"
    assert reasons(prompt)["SOUL.md"] == ("cut", "101 characters; the limit per file is 100")


def test_a_file_beyond_the_total_limit_is_omitted() -> None:
    inputs = replace(MAIN, prompt_chars=1000, file_chars=990)
    prompt = build_prompt(documents_by_prefix(SOUL="x" * 980, USER="y" * 50, MEMORY="z"), inputs)
    statuses = reasons(prompt)
    assert statuses["USER.md"] == ("left out", "50 characters; of the 1000 in total 4 remain")
    assert statuses["MEMORY.md"][0] == "kept", "a short file may still fit"
    assert len(prompt.text) <= 1000


@pytest.mark.parametrize(
    ("inputs", "limit"),
    [(replace(MAIN, file_chars=100), 100), (replace(MAIN, prompt_chars=1000), 987)],
)
def test_a_policy_file_over_the_limit_refuses_the_prompt(inputs: PromptInputs, limit: int) -> None:
    with pytest.raises(
        Conflict, match=rf"GUARDRAILS.md has 5000 characters; at most {limit} fit\."
    ) as refusal:
        build_prompt(documents_by_prefix(GUARDRAILS="x" * 5000), inputs)
    assert refusal.value.details == {"path": "GUARDRAILS.md", "chars": 5000, "limit": limit}


def test_an_unloadable_file_is_reported_and_an_unloadable_policy_file_is_refused() -> None:
    gone = PromptDocument(None, "agent", 3, "its bytes are gone", is_damaged=True)
    prompt = build_prompt({Path("SOUL.md"): gone, **documents_by_prefix(AGENTS="x")}, MAIN)
    assert prompt.text == "# AGENTS\nx"
    assert reasons(prompt)["SOUL.md"] == ("left out", "its bytes are gone")
    assert not prompt.is_cacheable
    with pytest.raises(
        DamagedPolicyFile,
        match=r"GUARDRAILS.md is required and could not be loaded: its bytes are gone",
    ):
        build_prompt({Path("GUARDRAILS.md"): gone}, SHARED)
    with pytest.raises(
        Conflict, match=r"PLATFORM.md is required and could not be loaded: not text"
    ):
        build_prompt({Path("PLATFORM.md"): PromptDocument(b"\xff", "agent", 1)}, MAIN)
    binary = build_prompt({Path("SOUL.md"): PromptDocument(b"\xff", "agent", 1)}, MAIN)
    assert reasons(binary)["SOUL.md"] == ("left out", "not text")


def test_an_extra_file_is_included_once() -> None:
    docs = ("SOUL.md", " team/style.md ", "team/style.md", "", "../x", TODAY, "MEMORY.md", "no.md")
    prompt = build_prompt(ALL, replace(MAIN, extra_docs=docs))
    assert prompt.text == FULL_PROMPT
    extras = [(block.name, block.status, block.reason) for block in prompt.blocks[10:]]
    assert extras[0] == ("RULES — SOUL.md", "left out", "already included above")
    assert extras[1][:2] == ("RULES — team/style.md", "kept")
    assert extras[2][2] == "listed twice"
    assert "is not a workspace path" in extras[3][2]
    assert [reason for _, _, reason in extras[4:]] == [
        *("already included above", "already included above", "no such file")
    ]


texts = st.text() | st.integers(0, 3000).map(lambda size: "x y" * (size // 3))
contents = st.dictionaries(st.sampled_from(NAMES), texts, max_size=len(NAMES))
prompt_inputs = st.builds(
    PromptInputs,
    st.sampled_from(Audience),
    st.just(DAY),
    st.lists(st.sampled_from([*NAMES, "no.md", "../x"]), max_size=4).map(tuple),
    st.integers(1000, 4000),
    st.integers(100, 3000),
)


@given(contents, prompt_inputs)
@example({"SOUL.md": "x" * 3000, "USER.md": "y" * 3000}, replace(MAIN, prompt_chars=1000))
def test_limits_and_order_hold_and_policy_is_never_cut(
    texts: dict[str, str], inputs: PromptInputs
) -> None:
    try:
        prompt = build_prompt(documents(texts), inputs)
    except Conflict:
        assert any(len(texts.get(path.text, "").strip()) > 100 for path in POLICY_PATHS)
        return
    assert prompt == build_prompt(documents(dict(reversed(texts.items()))), inputs)
    assert len(prompt.text) <= inputs.prompt_chars
    assert prompt.text == "\n\n".join(block.text for block in prompt.blocks if block.text)
    for block in prompt.blocks:
        assert (block.status is BlockStatus.OMITTED) == (not block.text)
        assert bool(block.reason) == (block.status is not BlockStatus.INCLUDED)
        assert (block.status is BlockStatus.TRUNCATED) <= block.text.endswith(TRUNCATION_MARKER)
        assert len(block.text) <= inputs.file_chars + 100
        if block.path in map(str, POLICY_PATHS) and block.text:
            assert block.text.endswith(texts[block.path].removeprefix("\ufeff").strip())
    order = [block.path for block in prompt.blocks if not block.name.startswith("RULES")]
    assert [name for name in NAMES if name in order] == [name for name in order if name in NAMES]


@given(contents, contents, prompt_inputs)
def test_private_files_do_not_affect_a_shared_prompt(
    texts: dict[str, str], other: dict[str, str], inputs: PromptInputs
) -> None:
    inputs = replace(inputs, mode=Audience.SHARED)
    private = {path: text for path, text in other.items() if path in PRIVATE}
    public = {path: text for path, text in texts.items() if path not in PRIVATE}

    def build(contents: dict[str, str], prompt_inputs: PromptInputs) -> Prompt | str:
        try:
            return build_prompt(documents(contents), prompt_inputs)
        except Conflict as refused:
            return str(refused)

    assert build(texts, inputs) == build({**public, **private}, inputs)
    assert build(public, inputs) == build(public, replace(inputs, day=DAY + timedelta(days=9)))


def test_run_variables_preserve_the_order_of_many_files() -> None:
    inputs = replace(MAIN, extra_docs=tuple(f"{n}.md" for n in range(1200)))
    assert (
        PromptInputs.from_run_variables(inputs.to_run_variables(), Audience.MAIN, MAIN.day)
        == inputs
    )
