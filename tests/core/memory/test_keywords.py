"""Tags extracted from texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.memory.keywords import MAX_TAG_BYTES, MAX_TAGS, extract_tags


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("OpenAI quota monitoring endpoint", ("openai", "quota", "monitoring", "endpoint")),
        ("Router VLAN config on switch", ("router", "vlan", "config", "switch")),
        (
            "edit src/main.rs and config.yaml files",
            ("src/main.rs", "config.yaml", "edit", "src", "main.rs"),
        ),
        ("nightly backups go to S3", ("backups", "s3", "nightly")),
        ("the networking team", ("network", "networking", "team")),
        ("2026-05-01 12345 a of", ()),
        ("see notes/2026-09-22.md", ("notes/2026-09-22.md",)),
        ("2026/09/22.md and 7-8.markdown", ()),
        ("snake_case and snake-case", ("snake-case", "snake", "case")),
        ("网关在东京", ("网关", "网关在东京")),
        ("Café CAFÉ café", ("café",)),
        ("!!! …", ()),
        ("", ()),
    ],
)
def test_tags_are_known_terms_then_compounds_then_words(text: str, tags: tuple[str, ...]) -> None:
    assert extract_tags(text) == tags


def test_tags_are_limited_to_eight_or_to_the_requested_number() -> None:
    text = "alpha beta gamma delta epsilon zeta theta iota kappa"
    assert len(extract_tags(text)) == MAX_TAGS
    assert extract_tags(text, 2) == ("alpha", "beta")
    assert extract_tags(text, 0) == ()


@given(st.text())
def test_every_tag_is_short_unique_and_lower_case(text: str) -> None:
    tags = extract_tags(text)
    assert len(set(tags)) == len(tags) <= MAX_TAGS
    assert all(len(tag.encode()) <= MAX_TAG_BYTES and tag[0].isalnum() for tag in tags)
    assert extract_tags(text) == tags
