"""How an agent is set up: what is understood, what is refused, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.agents.config import (
    DEFAULT_CONFIG,
    AgentConfig,
    config_from_stored,
    is_allowed,
    parse_config,
)
from carrel.core.errors import ValidationError

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)
fields = st.sampled_from(
    ["model", "timezone", "allowedTools", "extraDocs", "fileChars", "dreaming", "workspaceGit"]
)


def test_what_nobody_knows_is_kept_as_it_was_given() -> None:
    said = {"team": {"colour": "green"}, "model": "large"}
    assert parse_config(said) == config_from_stored(said)
    assert config_from_stored(said).model == "large"


def test_nothing_said_is_how_most_are_set_up() -> None:
    assert config_from_stored({}) == DEFAULT_CONFIG
    assert (DEFAULT_CONFIG.file_chars, DEFAULT_CONFIG.prompt_chars) == (12_000, 60_000)
    assert sum(
        getattr(DEFAULT_CONFIG.dreaming.weights, name)
        for name in ("frequency", "relevance", "recency", "diversity", "consolidation")
    ) == pytest.approx(0.94)


@pytest.mark.parametrize(
    "wrong",
    [
        {"allowedTools": "all"},
        {"dreaming": {"intervalSecs": 1}},
        {"fileChars": 0},
        {"extraDocs": [1]},
    ],
)
def test_what_does_not_fit_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="config"):
        parse_config(wrong)


@given(st.dictionaries(fields, json, max_size=4))
def test_whatever_was_stored_means_something(stored: dict[str, Any]) -> None:
    assert isinstance(config_from_stored(stored), AgentConfig)


def test_one_field_that_does_not_fit_takes_no_other_with_it() -> None:
    assert config_from_stored({"model": "large", "fileChars": "many"}).model == "large"


def test_patterns_are_names_or_beginnings_of_names() -> None:
    assert is_allowed((), "anything")
    assert is_allowed(("*",), "anything")
    assert is_allowed(("memory_*", "who_am_i"), "memory_history")
    assert is_allowed(("memory_*", "who_am_i"), "who_am_i")
    assert not is_allowed(("memory_*", "who_am_i"), "who_am_i_not")
