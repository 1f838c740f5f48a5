"""References of comparisons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.comparison import ComparedKind, ComparisonReference, parse_reference
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path

AGENT, TEMPLATE = ComparedKind.AGENT, ComparedKind.TEMPLATE
NOVEMBER = 1_793_491_200_000


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("agent:ada", ComparisonReference(AGENT, "ada")),
        ("agent:ada@now", ComparisonReference(AGENT, "ada")),
        ("agent:ada@2026-11-01T00:00:00Z", ComparisonReference(AGENT, "ada", at=NOVEMBER)),
        ("defaults", ComparisonReference(ComparedKind.DEFAULTS, "")),
        ("defaults/a/b.md", ComparisonReference(ComparedKind.DEFAULTS, "", Path("a/b.md"))),
        ("run:run_1/SOUL.md", ComparisonReference(ComparedKind.RUN, "run_1", Path("SOUL.md"))),
        (
            "template:sales/SOUL.md@v3",
            ComparisonReference(TEMPLATE, "sales", Path("SOUL.md"), version=3),
        ),
        ("template:s/a@b.md", ComparisonReference(TEMPLATE, "s", Path("a@b.md"))),
        ("template:s/a@v3@now", ComparisonReference(TEMPLATE, "s", Path("a@v3"))),
        ("workspace:ws_1", ComparisonReference(ComparedKind.WORKSPACE, "ws_1")),
    ],
)
def test_a_reference_names_a_source_a_file_and_a_moment(
    text: str, reference: ComparisonReference
) -> None:
    assert parse_reference(text) == reference


@pytest.mark.parametrize(
    "text",
    [
        *("", "ada", "agent", "agent:", "person:ada", "defaults:x", "agent:ada/", "agent:a/../b"),
        *("agent:ada@v3", "run:run_1@now2", "run:run_1@v1", "run:run_1@2026-11-01T00:00:00Z"),
        *("agent:ada@2026-11-01T00:00:00", "agent:ada@2026-13-01T00:00:00Z", "agent:" + "x" * 1400),
    ],
)
def test_other_texts_are_refused_or_name_what_cannot_exist(text: str) -> None:
    try:
        reference = parse_reference(text)
    except ValidationError:
        return
    assert "@" in reference.name


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for prefix in ("", "agent:", "agent:ada/", "defaults/a@", "run:x@"):
        try:
            parse_reference(prefix + text)
        except ValidationError:
            continue
