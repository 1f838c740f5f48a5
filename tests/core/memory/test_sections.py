"""What MEMORY.md says, by its sections, and how much of it is told at once."""

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


def test_a_section_is_a_heading_with_the_bullets_at_the_margin() -> None:
    assert parse_sections(MEMORY) == (
        Section("People", ("Luis prefers Spanish.", "Ana uses a Samsung.", "Bo is in Oslo.")),
        Section("Open questions", ()),
        Section("People", ("again",)),
    )


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_lines_end_as_they_like(end: str) -> None:
    assert parse_sections(MEMORY.replace("\n", end)) == parse_sections(MEMORY)


def test_a_section_is_found_by_part_of_its_heading_in_any_case() -> None:
    found = summarize_sections(parse_sections(MEMORY), " QUEST ")
    assert [section.heading for section in found.sections] == ["Open questions"]
    assert not found.truncated


def test_more_than_ten_bullets_are_counted_and_not_told() -> None:
    long = Section("Facts", tuple(f"fact {n}" for n in range(13)))
    assert summarize_sections([long]) == KnowledgeSummary(
        (Section("Facts", long.bullets[:10], 3),), truncated=True
    )


def test_no_more_sections_are_told_than_asked_for() -> None:
    many = [Section(f"S{n}", ("x",)) for n in range(60)]
    assert len(summarize_sections(many, limit=3).sections) == 3
    assert summarize_sections(many, limit=3).truncated
    assert len(summarize_sections(many, limit=60).sections) == 50


def test_the_beginning_is_told_of_a_bullet_that_is_longer_than_any_answer() -> None:
    found = summarize_sections([Section("Facts", ("ä" * 9000, "short"))])
    assert found.truncated
    [section] = found.sections
    assert section.extra_bullets == 1
    assert section.bullets[0].endswith("ä…")


said = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=3000)


@given(st.lists(st.builds(Section, said, st.lists(said, max_size=14).map(tuple)), max_size=9))
def test_whatever_is_told_fits(all: list[Section]) -> None:
    found = summarize_sections(all)
    assert len(msgspec.json.encode(found)) <= MAX_SUMMARY_BYTES
    assert found.truncated or [s.bullets for s in found.sections] == [s.bullets for s in all]
