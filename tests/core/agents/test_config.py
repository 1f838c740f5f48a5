"""Agent config: parsing, refusal of invalid values, and stored configs."""

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


def test_unknown_fields_do_not_change_the_parsed_config() -> None:
    fields = {"team": {"colour": "green"}, "model": "large"}
    assert parse_config(fields) == config_from_stored(fields)
    assert config_from_stored(fields).model == "large"


def test_an_empty_config_is_the_default_config() -> None:
    assert config_from_stored({}) == DEFAULT_CONFIG
    assert (DEFAULT_CONFIG.file_chars, DEFAULT_CONFIG.prompt_chars) == (12_000, 60_000)
    assert sum(
        getattr(DEFAULT_CONFIG.dreaming.weights, name)
        for name in ("frequency", "relevance", "recency", "diversity", "consolidation")
    ) == pytest.approx(0.94)


@pytest.mark.parametrize(
    "invalid",
    [
        {"allowedTools": "all"},
        {"dreaming": {"intervalSecs": 1}},
        {"fileChars": 0},
        {"extraDocs": [1]},
    ],
)
def test_an_invalid_field_raises_a_validation_error_naming_config(invalid: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="config"):
        parse_config(invalid)


@given(st.dictionaries(fields, json, max_size=4))
def test_any_stored_json_parses_to_an_agent_config(stored: dict[str, Any]) -> None:
    assert isinstance(config_from_stored(stored), AgentConfig)


def test_an_invalid_field_does_not_affect_the_other_fields() -> None:
    assert config_from_stored({"model": "large", "fileChars": "many"}).model == "large"


def test_tool_patterns_match_whole_names_or_prefixes() -> None:
    assert is_allowed((), "anything")
    assert is_allowed(("*",), "anything")
    assert is_allowed(("memory_*", "who_am_i"), "memory_history")
    assert is_allowed(("memory_*", "who_am_i"), "who_am_i")
    assert not is_allowed(("memory_*", "who_am_i"), "who_am_i_not")
