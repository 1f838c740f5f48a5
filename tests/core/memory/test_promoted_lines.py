"""Lines that dreams write into MEMORY.md, without changing a person's text."""

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
    replace_line,
    write_promotions,
)
from carrel.core.memory.promotion_score import PromotionCandidate, RankedCandidate, RejectionReason
from carrel.core.memory.recall_records import RecallStats
from carrel.core.overlay.placeholders import TOKENS
from carrel.core.runs import Audience

NOW = 1_800_000_000_000
MINUTE = 60_000
LIMITS = (20, 12_000)


def ranked(content: str, id: str = "m1", score: float = 0.42) -> RankedCandidate:
    return RankedCandidate(
        PromotionCandidate(id, content, Audience.MAIN, RecallStats(id, 5, 1.0, 3, 3, NOW)), score
    )


def promoted_lines(update: MemoryFileUpdate, written_at: int = NOW) -> list[PromotedLine]:
    return [
        PromotedLine(
            promotion.memory,
            block_heading(written_at),
            promotion.line,
            written_at,
            promotion.score,
        )
        for promotion in update.promoted
    ]


def test_a_new_file_has_a_title_a_heading_and_a_line() -> None:
    after = write_promotions(None, (), [ranked("Ada likes tea")], NOW, LIMITS)
    assert after.text == (
        "# MEMORY.md\n\n## Dreamed 2027-01-15 08:00 UTC\n\n"
        "- Ada likes tea _(score=0.42, hits=5, days=3)_\n"
    )


def test_existing_text_stays_and_its_last_line_is_ended() -> None:
    after = write_promotions("mine\r\nno end", (), [ranked("tea")], NOW, LIMITS)
    assert after.text.startswith("mine\r\nno end\n\n## Dreamed ")


def test_without_candidates_the_text_is_unchanged() -> None:
    assert write_promotions("mine", (), [], NOW, LIMITS).text == "mine"
    assert write_promotions(None, (), [], NOW, LIMITS).text == ""


@pytest.mark.parametrize(
    "existing",
    ["- Ada likes tea", "* ADA LIKES TEA!", "Ada likes  tea _(score=0.90, hits=9, days=1)_"],
)
def test_a_fact_already_in_the_file_is_not_promoted_again(existing: str) -> None:
    after = write_promotions(f"x\n{existing}\n", (), [ranked("Ada likes tea")], NOW, LIMITS)
    assert [rejection.reason for rejection in after.rejected] == [RejectionReason.ALREADY_PRESENT]
    assert after.promoted == ()


@pytest.mark.parametrize(
    ("existing", "new"),
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
def test_facts_that_differ_in_a_symbol_are_different(existing: str, new: str) -> None:
    after = write_promotions(f"x\n- {existing}\n", (), [ranked(new)], NOW, LIMITS)
    assert not after.rejected
    again = write_promotions(after.text, (), [ranked(new), ranked(existing)], NOW, LIMITS)
    assert [rejection.reason for rejection in again.rejected] == [
        RejectionReason.ALREADY_PRESENT,
        RejectionReason.ALREADY_PRESENT,
    ]


def test_two_memories_with_the_same_text_give_one_line() -> None:
    after = write_promotions(
        None, (), [ranked("tea: good"), ranked("Tea, GOOD", "m2")], NOW, LIMITS
    )
    assert [item.memory for item in after.promoted] == ["m1"]
    assert [item.memory for item in after.rejected] == ["m2"]


def test_facts_without_words_are_distinguished() -> None:
    after = write_promotions("\n\n- 🎉\n", (), [ranked("🎉"), ranked("🍵", "m2")], NOW, LIMITS)
    assert [item.memory for item in after.promoted] == ["m2"]


def test_a_sweep_promotes_at_most_its_limit() -> None:
    after = write_promotions(None, (), [ranked("a a", "m1"), ranked("b b", "m2")], NOW, (1, 12_000))
    assert [(rejection.memory, rejection.reason) for rejection in after.rejected] == [
        ("m2", RejectionReason.SWEEP_LIMIT)
    ]


def test_the_oldest_blocks_are_evicted_at_the_size_limit() -> None:
    text, standing = "mine\n", list[PromotedLine]()
    for n in range(4):
        written_at = NOW + n * MINUTE
        after = write_promotions(
            text, standing, [ranked(f"fact {n} " + "x" * 90, f"m{n}")], written_at, (20, 500)
        )
        text = after.text
        standing = [line for line in standing if line not in after.evicted] + promoted_lines(
            after, written_at
        )
    assert len(text) <= 500
    assert text.startswith("mine\n")
    assert [line.memory for line in standing] == ["m1", "m2", "m3"]
    assert all(line.line in text for line in standing)
    assert "fact 0" not in text


def test_the_weakest_and_oldest_lines_are_evicted_and_stronger_ones_stay() -> None:
    filler = " " + "x" * 90
    strong = promoted_lines(write_promotions("", (), [ranked("a" + filler, "a", 0.9)], NOW, LIMITS))
    weak = promoted_lines(write_promotions("", (), [ranked("b" + filler, "b", 0.4)], NOW, LIMITS))
    text = f"{strong[0].heading}\n\n{strong[0].line}\n{weak[0].line}\n"
    soon, late = NOW + MINUTE, NOW + 400 * 86_400_000
    limits = (20, len(text) + 60)

    after = write_promotions(text, strong + weak, [ranked("c" + filler, "c", 0.5)], soon, limits)
    assert [line.memory for line in after.evicted] == ["b"]
    [eviction] = after.rejected
    assert (eviction.memory, eviction.reason) == ("b", RejectionReason.EVICTED)
    assert "0.40" in eviction.why

    weaker = write_promotions(text, strong + weak, [ranked("c" + filler, "c", 0.3)], soon, limits)
    assert [item.reason for item in weaker.rejected] == [RejectionReason.FILE_FULL]
    assert weaker.text == text

    two = [ranked("c" + filler, "c", 0.3), ranked("d" + filler, "d", 0.2)]
    later = write_promotions(text, strong + weak, two, late, limits)
    assert {line.memory for line in later.evicted} == {"a", "b"}, "age counts too"


def test_a_line_is_replaced_only_below_its_own_heading() -> None:
    after = write_promotions("# Mine\r\n", (), [ranked("tea"), ranked("milk", "m2")], NOW, LIMITS)
    tea, _ = promoted_lines(after)
    copied = f"{tea.line}\n{after.text}"
    assert replace_line(copied, tea, "- coffee") == f"{tea.line}\n" + after.text.replace(
        tea.line, "- coffee"
    )
    assert replace_line("other\n", tea, "- coffee") == "other\n"


def test_a_file_filled_by_a_person_rejects_promotions_as_full() -> None:
    after = write_promotions("p" * 600, (), [ranked("tea")], NOW, (20, 500))
    assert [rejection.reason for rejection in after.rejected] == [RejectionReason.FILE_FULL]
    assert after.text == "p" * 600


def test_a_line_is_removed_only_from_its_own_block() -> None:
    after = write_promotions("# Mine\n", (), [ranked("tea"), ranked("milk", "m2")], NOW, LIMITS)
    tea, milk = promoted_lines(after)
    copied = f"# Mine\n{tea.line}\n" + after.text.removeprefix("# Mine\n")
    assert remove_lines(copied, [tea]) == copied.replace(f"\n\n{tea.line}\n", "\n\n")
    assert remove_lines(remove_lines(after.text, [tea]), [milk]) == "# Mine\n"


def test_a_promoted_line_that_a_person_edited_is_not_removed() -> None:
    after = write_promotions("", (), [ranked("tea")], NOW, LIMITS)
    [tea] = promoted_lines(after)
    edited = after.text.replace("- tea", "- green tea")
    assert remove_lines(edited, [tea]) == edited
    assert find_missing(edited, [tea]) == [tea]
    assert find_missing(after.text, [tea]) == []


def test_a_persons_line_in_a_promoted_block_stays() -> None:
    after = write_promotions("", (), [ranked("tea")], NOW, LIMITS)
    text = after.text + "and my own line\n"
    assert remove_lines(text, promoted_lines(after)).endswith(" UTC\n\nand my own line\n")


def test_lines_are_removed_from_a_file_with_crlf_line_ends() -> None:
    after = write_promotions("mine\n", (), [ranked("tea")], NOW, LIMITS)
    assert remove_lines(after.text.replace("\n", "\r\n"), promoted_lines(after)) == "mine\r\n"


person_texts = st.lists(
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


@given(person_texts, st.lists(st.tuples(facts, person_texts, st.booleans()), max_size=6))
def test_no_sequence_of_sweeps_changes_a_byte_of_a_persons_text(
    text: str, sweeps: list[tuple[list[str], str, bool]]
) -> None:
    standing: list[PromotedLine] = []
    for n, (contents, more, first) in enumerate(sweeps):
        text = more + text if first else text + more
        standing = [line for line in standing if line not in find_missing(text, standing)]
        swept_at = NOW + (n + 1) * MINUTE
        before = remove_lines(text, standing)
        candidates = [ranked(content, f"m{n}.{k}") for k, content in enumerate(contents)]
        after = write_promotions(text, standing, candidates, swept_at, (3, 420))
        text = after.text
        standing = [line for line in standing if line not in after.evicted] + promoted_lines(
            after, swept_at
        )
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
def test_a_promoted_memory_is_one_list_item_and_no_placeholder(content: str) -> None:
    line = build_promotion(ranked(content)).line
    assert len(re.split("[\r\n\v\f\x85\u2028\u2029]", line)) == 1
    assert not any(f"{{{{{token}}}}}" in line for token in TOKENS)
    tokens = MarkdownIt("commonmark").parse(f"# T\n\n{line}\n- next\n\n# T\n")
    outline = [token.type for token in tokens if token.level < 2 and token.nesting >= 0]
    assert outline == [
        *("heading_open", "inline", "bullet_list_open", "list_item_open", "list_item_open"),
        *("heading_open", "inline"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The wiki is https://wiki.example.org/Some_(page)?a=1&b=_x_#top",
        "Run `git rebase -i HEAD~3 && make -j$(nproc) | tee out.log`",
        "Put it into src/__init__.py, not into __main__.py",
        "Prices are <= 5 * 3 [net], C++ & C#, {{not_a_token}} {braces} $HOME ~/.ssh",
        "1. First " + "x" * 1900,
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian needs the non-joiner
        "👩\u200d💻 and ❤\ufe0f\u200d🔥",
        "集合\uff5b一、二\uff5d",
    ],
)
def test_a_promoted_line_is_the_text_as_it_was_remembered(text: str) -> None:
    assert build_promotion(ranked(text)).line == f"- {text} _(score=0.42, hits=5, days=3)_"


def test_invisible_characters_are_not_promoted() -> None:
    hidden = "a\u200db \u202ec é\ufe0f\ufe0f\U000e0041\u200b<!-- d -->"
    assert build_promotion(ranked(hidden)).line == "- ab c é\ufe0f _(score=0.42, hits=5, days=3)_"


def test_a_promoted_line_is_flat_and_redacted() -> None:
    line = build_promotion(ranked("the key\n## is hunter22"), lambda text: text.replace("22", "x"))
    assert line.line == "- the key ## is hunterx _(score=0.42, hits=5, days=3)_"


def test_the_dream_log_has_an_entry_for_every_sweep() -> None:
    first = dream_log.append_dream(None, NOW, (3, 1), ())
    assert first == (
        "# DREAMS.md — Dream Diary\n\n## Deep Sleep 2027-01-15 08:00 UTC\n\n"
        "- candidates: 3\n- promoted: 0\n- skipped (already promoted): 1\n"
    )
    tea = build_promotion(ranked("tea"))
    second = dream_log.append_dream(first, NOW + MINUTE, (3, 1), [tea])
    assert second.endswith("\n\n### Promoted\n\n- tea — score 0.42, hits 5\n")
    assert second.startswith(first)
    assert dream_log.remove_line(second, dream_log.log_line(tea)) == second[: second.index("- tea")]


def test_the_oldest_log_entries_are_evicted_at_the_size_limit() -> None:
    text: str | None = "# Mine\n\nabout dreams\n"
    for n in range(600):
        text = dream_log.append_dream(text, NOW + n * MINUTE, (n, 0), ())
        assert len(text) <= dream_log.MAX_LOG_LENGTH
    assert text
    assert text.startswith("# Mine\n\nabout dreams\n\n## Deep Sleep ")
    assert "- candidates: 599\n" in text


def test_the_index_lists_the_sections_and_entries_of_a_memory_file() -> None:
    after = write_promotions(
        "# Mine\n\n- one\n\n```\n- no\n```\n", (), [ranked("tea")], NOW, LIMITS
    )
    index = json.loads(dream_log.build_index(after.text, promoted_lines(after), NOW))

    assert (index["version"], index["file"], index["entryCount"]) == (1, "MEMORY.md", 2)
    assert index["archiveChecksum"].startswith("sha256:")
    titles = [
        (section["title"], section["level"], len(section["entries"]))
        for section in index["sections"]
    ]
    assert titles == [("Mine", 1, 1), ("Dreamed 2027-01-15 08:00 UTC", 2, 1)]
    [entry] = index["sections"][1]["entries"]
    assert entry["memoryId"] == "m1"
    assert after.text.splitlines()[entry["line"] - 1] == promoted_lines(after)[0].line


def test_an_index_that_differs_only_in_its_time_is_the_same() -> None:
    index, later = (
        dream_log.build_index("x\n", (), NOW),
        dream_log.build_index("x\n", (), NOW + MINUTE),
    )
    assert index != later
    assert dream_log.same_index(index, later)
    assert not dream_log.same_index(index, dream_log.build_index("y\n", (), NOW))
    assert not dream_log.same_index(None, index)


def test_a_promotion_has_the_score_hits_days_and_line() -> None:
    assert build_promotion(ranked("tea")) == Promotion(
        "m1", 0.42, 5, 3, "- tea _(score=0.42, hits=5, days=3)_"
    )
