"""The prompt: its order, its limits, and what is never in it."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from carrel.core.errors import Conflict
from carrel.core.identifiers import Path
from carrel.core.prompt.assembly import (
    POLICY_PATHS,
    SHARED_PATHS,
    TRUNCATION_MARKER,
    BlockStatus,
    Prompt,
    PromptDocument,
    build_prompt,
    note_path,
    prompt_paths,
)
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.runs import Audience

DAY = date(2026, 4, 24)
MAIN = PromptInputs(Audience.MAIN, DAY)
OTHERS = PromptInputs(Audience.SHARED, DAY)
TODAY, YESTERDAY = "notes/2026-04-24.md", "notes/2026-04-23.md"
NAMES = [
    *("PLATFORM.md", "GUARDRAILS.md", "CAPABILITIES.md", "IDENTITY.md", "SOUL.md", "USER.md"),
    *("AGENTS.md", TODAY, YESTERDAY, "MEMORY.md", "team/style.md"),
]
PRIVATE = ["USER.md", TODAY, YESTERDAY, "MEMORY.md", "team/style.md", "DREAMS.md"]


def files(**texts: str) -> dict[Path, PromptDocument]:
    """Keyed by what their names begin with."""
    return of({next(name for name in NAMES if name.startswith(k)): v for k, v in texts.items()})


def of(texts: dict[str, str]) -> dict[Path, PromptDocument]:
    return {Path(path): PromptDocument(text.encode(), "agent", 1) for path, text in texts.items()}


def reasons(prompt: Prompt) -> dict[str, tuple[str, str]]:
    return {block.path: (block.status, block.reason) for block in prompt.blocks}


ALL = of({name: f"text of {name}" for name in NAMES} | {"IDENTITY.md": "- Name: Kate"})
WHOLE = """\
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


def test_the_main_prompt_has_everything_in_its_order() -> None:
    prompt = build_prompt(ALL, replace(MAIN, extra_docs=("team/style.md",)))
    assert prompt.text == WHOLE
    assert {block.status for block in prompt.blocks} == {BlockStatus.INCLUDED}
    assert [block.path for block in prompt.blocks] == NAMES
    assert prompt.blocks[4].source == "agent"


def test_the_shared_prompt_has_policy_identity_soul_and_agents_alone() -> None:
    prompt = build_prompt(ALL, replace(OTHERS, extra_docs=("team/style.md", "SOUL.md")))
    assert [line for line in prompt.text.splitlines() if line.startswith("#")] == [
        *("# PLATFORM", "# GUARDRAILS", "# CAPABILITIES", "# IDENTITY", "# SOUL", "# AGENTS"),
    ]
    left = [block for block in prompt.blocks if block.status is BlockStatus.OMITTED]
    assert {block.path for block in left} == {
        *("USER.md", "notes/", "MEMORY.md", "team/style.md", "SOUL.md"),
    }
    assert {(block.version, block.source, block.text) for block in left} == {(None, None, "")}
    assert set(prompt_paths(OTHERS)) == SHARED_PATHS


def test_what_is_missing_or_blank_has_no_block_and_a_reason() -> None:
    prompt = build_prompt(
        files(SOUL=" \n\t", IDENTITY="- Name: (pick)", AGENTS="\ufeff\n x \n"), MAIN
    )
    assert prompt.text == "# AGENTS\nx"
    told = reasons(prompt)
    assert told["SOUL.md"] == ("left out", "empty")
    assert told["USER.md"] == ("left out", "no such file")
    assert told["IDENTITY.md"][1] == "no name, emoji, vibe or creature"
    assert build_prompt({}, MAIN).text == ""


def test_yesterdays_note_alone_stands_under_the_heading_too() -> None:
    assert build_prompt(of({YESTERDAY: "n"}), MAIN).text == "# RECENT NOTES\n## 2026-04-23\nn"
    assert note_path(DAY - timedelta(days=1)) == Path(YESTERDAY)
    assert build_prompt({}, replace(MAIN, day=date.min)).text == ""


def test_a_file_at_its_limit_is_whole_and_one_over_it_is_cut() -> None:
    inputs = replace(MAIN, file_chars=100)
    assert build_prompt(files(SOUL="é" * 100), inputs).text == "# SOUL\n" + "é" * 100
    prompt = build_prompt(files(SOUL="é" * 101), inputs)
    assert prompt.text == "# SOUL\n" + "é" * (100 - len(TRUNCATION_MARKER)) + "\n\n[truncated]"
    assert reasons(prompt)["SOUL.md"] == ("cut", "101 characters; the limit per file is 100")


def test_what_does_not_fit_into_the_limit_of_all_is_left_out() -> None:
    inputs = replace(MAIN, prompt_chars=1000, file_chars=990)
    prompt = build_prompt(files(SOUL="x" * 980, USER="y" * 50, MEMORY="z"), inputs)
    told = reasons(prompt)
    assert told["USER.md"] == ("left out", "50 characters; of the 1000 in total 4 remain")
    assert told["MEMORY.md"][0] == "kept", "what is short may still fit"
    assert len(prompt.text) <= 1000


@pytest.mark.parametrize(
    ("wish", "room"),
    [(replace(MAIN, file_chars=100), 100), (replace(MAIN, prompt_chars=1000), 987)],
)
def test_policy_that_does_not_fit_refuses_the_prompt(wish: PromptInputs, room: int) -> None:
    with pytest.raises(
        Conflict, match=rf"GUARDRAILS.md has 5000 characters; at most {room} fit\."
    ) as no:
        build_prompt(files(GUARDRAILS="x" * 5000), wish)
    assert no.value.details == {"path": "GUARDRAILS.md", "chars": 5000, "limit": room}


def test_what_cannot_be_had_is_reported_but_of_policy_refused() -> None:
    gone = PromptDocument(None, "agent", 3, "its bytes are gone")
    prompt = build_prompt({Path("SOUL.md"): gone, **files(AGENTS="x")}, MAIN)
    assert prompt.text == "# AGENTS\nx"
    assert reasons(prompt)["SOUL.md"] == ("left out", "its bytes are gone")
    assert not prompt.is_cacheable
    with pytest.raises(
        Conflict, match=r"GUARDRAILS.md is required and could not be loaded: its bytes are gone"
    ):
        build_prompt({Path("GUARDRAILS.md"): gone}, OTHERS)
    with pytest.raises(
        Conflict, match=r"PLATFORM.md is required and could not be loaded: not text"
    ):
        build_prompt({Path("PLATFORM.md"): PromptDocument(b"\xff", "agent", 1)}, MAIN)
    binary = build_prompt({Path("SOUL.md"): PromptDocument(b"\xff", "agent", 1)}, MAIN)
    assert reasons(binary)["SOUL.md"] == ("left out", "not text")


def test_an_extra_file_is_never_there_twice() -> None:
    docs = ("SOUL.md", " team/style.md ", "team/style.md", "", "../x", TODAY, "MEMORY.md", "no.md")
    prompt = build_prompt(ALL, replace(MAIN, extra_docs=docs))
    assert prompt.text == WHOLE
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
wishes = st.builds(
    PromptInputs,
    st.sampled_from(Audience),
    st.just(DAY),
    st.lists(st.sampled_from([*NAMES, "no.md", "../x"]), max_size=4).map(tuple),
    st.integers(1000, 4000),
    st.integers(100, 3000),
)


@given(contents, wishes)
@example({"SOUL.md": "x" * 3000, "USER.md": "y" * 3000}, replace(MAIN, prompt_chars=1000))
def test_the_limits_hold_order_holds_and_policy_is_never_cut(
    given: dict[str, str], wish: PromptInputs
) -> None:
    try:
        prompt = build_prompt(of(given), wish)
    except Conflict:
        assert any(len(given.get(path.text, "").strip()) > 100 for path in POLICY_PATHS)
        return
    assert prompt == build_prompt(of(dict(reversed(given.items()))), wish)
    assert len(prompt.text) <= wish.prompt_chars
    assert prompt.text == "\n\n".join(block.text for block in prompt.blocks if block.text)
    for block in prompt.blocks:
        assert (block.status is BlockStatus.OMITTED) == (not block.text)
        assert bool(block.reason) == (block.status is not BlockStatus.INCLUDED)
        assert (block.status is BlockStatus.CUT_SHORT) <= block.text.endswith(TRUNCATION_MARKER)
        assert len(block.text) <= wish.file_chars + 100
        if block.path in map(str, POLICY_PATHS) and block.text:
            assert block.text.endswith(given[block.path].removeprefix("\ufeff").strip())
    order = [block.path for block in prompt.blocks if not block.name.startswith("RULES")]
    assert [name for name in NAMES if name in order] == [name for name in order if name in NAMES]


@given(contents, contents, wishes)
def test_nothing_private_makes_any_difference_where_others_listen(
    given: dict[str, str], other: dict[str, str], wish: PromptInputs
) -> None:
    wish = replace(wish, mode=Audience.SHARED)
    private = {path: text for path, text in other.items() if path in PRIVATE}
    public = {path: text for path, text in given.items() if path not in PRIVATE}

    def made(texts: dict[str, str], inputs: PromptInputs) -> Prompt | str:
        try:
            return build_prompt(of(texts), inputs)
        except Conflict as refused:
            return str(refused)

    assert made(given, wish) == made({**public, **private}, wish)
    assert made(public, wish) == made(public, replace(wish, day=DAY + timedelta(days=9)))


def test_a_run_keeps_the_order_of_ever_so_many_files() -> None:
    inputs = replace(MAIN, extra_docs=tuple(f"{n}.md" for n in range(1200)))
    assert (
        PromptInputs.from_run_variables(inputs.to_run_variables(), Audience.MAIN, MAIN.day)
        == inputs
    )
