"""Tags of agents: lower-case words, each once, in order."""

from __future__ import annotations

import pytest

from carrel.core.agents.tags import MAX_TAG_LENGTH, MAX_TAGS, parse_tags
from carrel.core.errors import ValidationError


def test_tags_are_sorted_and_each_once() -> None:
    assert parse_tags(["eu", "beta", "eu", "team:a.b_c-1"]) == ("beta", "eu", "team:a.b_c-1")
    assert parse_tags([]) == ()


@pytest.mark.parametrize(
    "tag", ["", "EU", "a b", "-a", "ä", "a\n", "[REDACTED:key]", "a" * (MAX_TAG_LENGTH + 1), 1]
)
def test_other_texts_are_no_tags_and_stay_out_of_the_message(tag: object) -> None:
    with pytest.raises(ValidationError, match="a tag must be 1 to 40") as refused:
        parse_tags([tag])
    assert "REDACTED" not in str(refused.value)


def test_an_agent_has_a_limited_number_of_tags() -> None:
    tags = [f"t{number}" for number in range(MAX_TAGS + 1)]
    assert len(parse_tags(tags[1:])) == MAX_TAGS
    with pytest.raises(ValidationError, match="at most 20"):
        parse_tags(tags)
