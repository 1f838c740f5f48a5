"""Sections of MEMORY.md and the size limits of their summary."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.memory.sections import (
    MAX_SUMMARY_BYTES,
    KnowledgeSummary,
    Section,
    parse_sections,
    summarize_sections,
)

MEMORY = """# MEMORY.md

- before any heading

## People
- Luis prefers Spanish.
* Ana uses a Samsung.
  - not at the margin
prose
### Colleagues
+ Bo is in Oslo.

## Open questions

```
## not a heading
- not a bullet
```
> - quoted

## People
-  again
- 
"""


def test_a_section_is_a_heading_with_its_top_level_bullets() -> None:
    assert parse_sections(MEMORY) == (
        Section("People", ("Luis prefers Spanish.", "Ana uses a Samsung.", "Bo is in Oslo.")),
        Section("Open questions", ()),
        Section("People", ("again",)),
    )


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_every_kind_of_line_end_is_accepted(end: str) -> None:
    assert parse_sections(MEMORY.replace("\n", end)) == parse_sections(MEMORY)


def test_a_section_is_matched_by_part_of_its_heading_in_any_case() -> None:
    summary = summarize_sections(parse_sections(MEMORY), " QUEST ")
    assert [section.heading for section in summary.sections] == ["Open questions"]
    assert not summary.truncated


def test_more_than_ten_bullets_are_counted_and_not_listed() -> None:
    long = Section("Facts", tuple(f"fact {n}" for n in range(13)))
    assert summarize_sections([long]) == KnowledgeSummary(
        (Section("Facts", long.bullets[:10], 3),), truncated=True
    )


def test_at_most_the_requested_number_of_sections_is_listed() -> None:
    many = [Section(f"S{n}", ("x",)) for n in range(60)]
    assert len(summarize_sections(many, limit=3).sections) == 3
    assert summarize_sections(many, limit=3).truncated
    assert len(summarize_sections(many, limit=60).sections) == 50


def test_a_bullet_longer_than_the_limit_is_cut() -> None:
    summary = summarize_sections([Section("Facts", ("ä" * 9000, "short"))])
    assert summary.truncated
    [section] = summary.sections
    assert section.extra_bullets == 1
    assert section.bullets[0].endswith("ä…")


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=3000)


@given(st.lists(st.builds(Section, texts, st.lists(texts, max_size=14).map(tuple)), max_size=9))
def test_every_summary_fits_the_size_limit(sections: list[Section]) -> None:
    summary = summarize_sections(sections)
    assert len(msgspec.json.encode(summary)) <= MAX_SUMMARY_BYTES
    assert summary.truncated or [s.bullets for s in summary.sections] == [
        s.bullets for s in sections
    ]
