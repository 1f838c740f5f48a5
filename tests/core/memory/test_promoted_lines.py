"""What dreams write into MEMORY.md: one line each, and never over what a person wrote."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from carrel.core.memory import dream_log
from carrel.core.memory.promoted_lines import (
    MemoryFileUpdate,
    PromotedLine,
    Promotion,
    block_heading,
    build_promotion,
    find_missing,
    remove_lines,
    write_promotions,
)
from carrel.core.memory.promotion_score import PromotionCandidate, RankedCandidate, RejectionReason
from carrel.core.memory.recall import RecallStats
from carrel.core.overlay.placeholders import TOKENS
from carrel.core.runs import Audience

NOW = 1_800_000_000_000
MINUTE = 60_000
ROOMY = (20, 12_000)


def good(content: str, id: str = "m1", score: float = 0.42) -> RankedCandidate:
    return RankedCandidate(
        PromotionCandidate(id, content, Audience.MAIN, RecallStats(id, 5, 1.0, 3, 3, NOW)), score
    )


def stood(after: MemoryFileUpdate, at: int = NOW) -> list[PromotedLine]:
    return [PromotedLine(one.memory, block_heading(at), one.line, at) for one in after.promoted]


def test_a_new_file_has_a_title_a_heading_and_a_line() -> None:
    after = write_promotions(None, (), [good("Ada likes tea")], NOW, ROOMY)
    assert after.text == (
        "# MEMORY.md\n\n## Dreamed 2027-01-15 08:00 UTC\n\n"
        "- Ada likes tea _(score=0.42, hits=5, days=3)_\n"
    )


def test_what_is_there_stays_as_it_is_and_ends_its_last_line() -> None:
    after = write_promotions("mine\r\nno end", (), [good("tea")], NOW, ROOMY)
    assert after.text.startswith("mine\r\nno end\n\n## Dreamed ")


def test_nothing_to_promote_changes_nothing() -> None:
    assert write_promotions("mine", (), [], NOW, ROOMY).text == "mine"
    assert write_promotions(None, (), [], NOW, ROOMY).text == ""


@pytest.mark.parametrize(
    "said", ["- Ada likes tea", "* ADA LIKES TEA!", "Ada likes  tea _(score=0.90, hits=9, days=1)_"]
)
def test_what_is_said_already_is_not_said_again(said: str) -> None:
    after = write_promotions(f"x\n{said}\n", (), [good("Ada likes tea")], NOW, ROOMY)
    assert [one.reason for one in after.rejected] == [RejectionReason.ALREADY_PRESENT]
    assert after.promoted == ()


@pytest.mark.parametrize(
    ("said", "new"),
    [
        ("Prefers C#", "Prefers C++"),
        ("Prefers C", "Prefers C++"),
        ("The balance is 5", "The balance is -5"),
        ("Likes the emoji 🐙", "Likes the emoji 🦀"),
        ("It costs 5 $", "It costs 5 €"),
        ("Answers if load > 5", "Answers if load < 5"),
        ("Takes 5 of it", "Takes 5% of it"),
        ("!", "..."),
    ],
)
def test_what_differs_in_a_sign_says_something_else(said: str, new: str) -> None:
    after = write_promotions(f"x\n- {said}\n", (), [good(new)], NOW, ROOMY)
    assert not after.rejected
    again = write_promotions(after.text, (), [good(new), good(said)], NOW, ROOMY)
    assert [one.reason for one in again.rejected] == [
        RejectionReason.ALREADY_PRESENT,
        RejectionReason.ALREADY_PRESENT,
    ]


def test_two_memories_that_say_the_same_give_one_line() -> None:
    after = write_promotions(None, (), [good("tea: good"), good("Tea, GOOD", "m2")], NOW, ROOMY)
    assert [one.memory for one in after.promoted] == ["m1"]
    assert [one.memory for one in after.rejected] == ["m2"]


def test_what_has_no_words_is_told_apart_too() -> None:
    after = write_promotions("\n\n- 🎉\n", (), [good("🎉"), good("🍵", "m2")], NOW, ROOMY)
    assert [one.memory for one in after.promoted] == ["m2"]


def test_no_more_are_promoted_than_one_sweep_may() -> None:
    after = write_promotions(None, (), [good("a a", "m1"), good("b b", "m2")], NOW, (1, 12_000))
    assert [(one.memory, one.reason) for one in after.rejected] == [
        ("m2", RejectionReason.SWEEP_LIMIT)
    ]


def test_the_oldest_blocks_make_room() -> None:
    text, standing = "mine\n", list[PromotedLine]()
    for n in range(4):
        at = NOW + n * MINUTE
        after = write_promotions(
            text, standing, [good(f"fact {n} " + "x" * 90, f"m{n}")], at, (20, 500)
        )
        text = after.text
        standing = [one for one in standing if one not in after.evicted] + stood(after, at)
    assert len(text) <= 500
    assert text.startswith("mine\n")
    assert [one.memory for one in standing] == ["m1", "m2", "m3"]
    assert all(one.line in text for one in standing)
    assert "fact 0" not in text


def test_a_person_who_fills_the_file_leaves_no_room_and_it_is_said() -> None:
    after = write_promotions("p" * 600, (), [good("tea")], NOW, (20, 500))
    assert [one.reason for one in after.rejected] == [RejectionReason.FILE_FULL]
    assert after.text == "p" * 600


def test_a_line_goes_where_it_was_dreamed_and_nowhere_else() -> None:
    after = write_promotions("# Mine\n", (), [good("tea"), good("milk", "m2")], NOW, ROOMY)
    tea, milk = stood(after)
    copied = f"# Mine\n{tea.line}\n" + after.text.removeprefix("# Mine\n")
    assert remove_lines(copied, [tea]) == copied.replace(f"\n\n{tea.line}\n", "\n\n")
    assert remove_lines(remove_lines(after.text, [tea]), [milk]) == "# Mine\n"


def test_a_line_that_a_person_has_edited_is_theirs() -> None:
    after = write_promotions("", (), [good("tea")], NOW, ROOMY)
    [tea] = stood(after)
    edited = after.text.replace("- tea", "- green tea")
    assert remove_lines(edited, [tea]) == edited
    assert find_missing(edited, [tea]) == [tea]
    assert find_missing(after.text, [tea]) == []


def test_a_block_in_which_a_person_has_written_keeps_that() -> None:
    after = write_promotions("", (), [good("tea")], NOW, ROOMY)
    text = after.text + "and my own line\n"
    assert remove_lines(text, stood(after)).endswith(" UTC\n\nand my own line\n")


def test_lines_are_known_again_in_an_editor_that_ends_them_otherwise() -> None:
    after = write_promotions("mine\n", (), [good("tea")], NOW, ROOMY)
    assert remove_lines(after.text.replace("\n", "\r\n"), stood(after)) == "mine\r\n"


persons = st.lists(
    st.sampled_from(
        [
            "",
            "# Title",
            "## Dreamed 2027-01-15 08:00 UTC",
            "- tea",
            "text\r",
            "## Other",
            "  x",
            "é",
        ]
    ),
    max_size=6,
).map(lambda lines: "".join(f"{line}\n" for line in lines))
facts = st.lists(st.sampled_from([f"fact {n} about things" for n in range(30)]), max_size=4)


@given(persons, st.lists(st.tuples(facts, persons, st.booleans()), max_size=6))
def test_no_history_of_sweeps_changes_a_byte_of_what_a_person_wrote(
    text: str, nights: list[tuple[list[str], str, bool]]
) -> None:
    standing: list[PromotedLine] = []
    for n, (contents, more, first) in enumerate(nights):
        text = more + text if first else text + more
        standing = [one for one in standing if one not in find_missing(text, standing)]
        at = NOW + (n + 1) * MINUTE
        before = remove_lines(text, standing)
        wanted = [good(said, f"m{n}.{k}") for k, said in enumerate(contents)]
        after = write_promotions(text, standing, wanted, at, (3, 420))
        text = after.text
        standing = [one for one in standing if one not in after.evicted] + stood(after, at)
        assert remove_lines(text, standing) == before
        assert not after.promoted or len(text) <= 420


hostile = st.sampled_from(
    [
        *("## x", "a\n## b", "<!-- x", "--> y", "- x", "1. x", "> q", "```", "~~~", "***", "|a|"),
        *("[x](http://y)", "![x](y)", "<b>x</b>", "&lt;", "a\r\nb", "a\u2028# b", "{{AGENT_NAME}}"),
        *(
            "_(score=9.99, hits=9, days=9)_",
            "\\",
            "`",
            "http://x.y",
            "www.x.y",
            "\x1b[2J",
            "\u202e",
        ),
    ]
)


@given(st.lists(hostile | st.text(max_size=5), min_size=1, max_size=5).map(" ".join))
def test_a_memory_is_one_line_of_text_and_never_structure(content: str) -> None:
    line = build_promotion(good(content)).line
    assert len(re.split("[\r\n\v\f\x85\u2028\u2029]", line)) == 1
    assert not any(f"{{{{{token}}}}}" in line for token in TOKENS)
    tokens = (
        MarkdownIt("commonmark")
        .enable("table")
        .enable("strikethrough")
        .parse(f"# T\n\n{line}\n- next\n")
    )
    kinds = [token.type for token in tokens]
    assert kinds == MarkdownKinds
    inline = tokens[6].children or []
    assert {one.type for one in inline[:-3]} <= {"text", "text_special"}
    assert [one.type for one in inline[-3:]] == ["em_open", "text", "em_close"]


MarkdownKinds = [
    token.type
    for token in MarkdownIt("commonmark")
    .enable("table")
    .enable("strikethrough")
    .parse("# T\n\n- text _(x)_\n- next\n")
]


def test_the_diary_notes_every_night() -> None:
    quiet = dream_log.append_dream(None, NOW, (3, 1), ())
    assert quiet == (
        "# DREAMS.md — Dream Diary\n\n## Deep Sleep 2027-01-15 08:00 UTC\n\n"
        "- candidates: 3\n- promoted: 0\n- skipped (already promoted): 1\n"
    )
    tea = build_promotion(good("tea"))
    second = dream_log.append_dream(quiet, NOW + MINUTE, (3, 1), [tea])
    assert second.endswith("\n\n### Promoted\n\n- tea — score 0.42, hits 5\n")
    assert second.startswith(quiet)
    assert dream_log.remove_line(second, dream_log.log_line(tea)) == second[: second.index("- tea")]


def test_the_oldest_nights_make_room_in_the_diary() -> None:
    text: str | None = "# Mine\n\nabout dreams\n"
    for n in range(600):
        text = dream_log.append_dream(text, NOW + n * MINUTE, (n, 0), ())
        assert len(text) <= dream_log.MAX_LOG_LENGTH
    assert text
    assert text.startswith("# Mine\n\nabout dreams\n\n## Deep Sleep ")
    assert "- candidates: 599\n" in text


def test_the_index_tells_what_a_memory_file_holds() -> None:
    after = write_promotions("# Mine\n\n- one\n\n```\n- no\n```\n", (), [good("tea")], NOW, ROOMY)
    index = json.loads(dream_log.build_index(after.text, stood(after), NOW))

    assert (index["version"], index["file"], index["entryCount"]) == (1, "MEMORY.md", 2)
    assert index["archiveChecksum"].startswith("sha256:")
    titles = [(one["title"], one["level"], len(one["entries"])) for one in index["sections"]]
    assert titles == [("Mine", 1, 1), ("Dreamed 2027-01-15 08:00 UTC", 2, 1)]
    [entry] = index["sections"][1]["entries"]
    assert entry["memoryId"] == "m1"
    assert after.text.splitlines()[entry["line"] - 1] == stood(after)[0].line


def test_an_index_that_differs_only_in_its_time_is_the_same() -> None:
    one, later = (
        dream_log.build_index("x\n", (), NOW),
        dream_log.build_index("x\n", (), NOW + MINUTE),
    )
    assert one != later
    assert dream_log.same_index(one, later)
    assert not dream_log.same_index(one, dream_log.build_index("y\n", (), NOW))
    assert not dream_log.same_index(None, one)


def test_a_promotion_carries_what_the_ledger_needs() -> None:
    assert build_promotion(good("tea")) == Promotion(
        "m1", 0.42, 5, 3, "- tea _(score=0.42, hits=5, days=3)_"
    )
