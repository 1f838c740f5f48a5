"""What is wrong with a prompt is said before a model reads it."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.identifiers import Path
from carrel.core.overlay.placeholders import PlaceholderValues, render_bytes
from carrel.core.prompt.assembly import PromptDocument
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.lint import LintInput, LintRule, lint_prompt
from carrel.core.runs import Audience

WHO = PlaceholderValues(agent_name="Kate")
WISH = PromptInputs(Audience.MAIN, date(2026, 4, 24), ("rules.md",), 10_000, 1_000)
KEY = "ghp_" + "a1B2" * 9


def found(
    texts: dict[str, str], variables: PlaceholderValues | None = WHO
) -> list[tuple[str, str]]:
    stored = {Path(path): LintInput(text.encode(), variables) for path, text in texts.items()}
    served = {
        path: PromptDocument(
            render_bytes(file.content, variables) if variables else file.content, "agent", 1
        )
        for path, file in stored.items()
        if path.text != "elsewhere.md"
    }
    given = {"rules.md": "r", **texts}
    served.setdefault(Path("rules.md"), PromptDocument(given["rules.md"].encode(), "agent", 1))
    return [(flaw.rule, flaw.path) for flaw in lint_prompt(served, stored, WISH)]


def test_nothing_is_wrong_with_a_good_prompt() -> None:
    texts = {"SOUL.md": "I am {{AGENT_NAME}}, since 2026-04-01.", "IDENTITY.md": "- Name: (pick)"}
    assert (
        found(texts | {"USER.md": " ", "notes/2026-04-24.md": "at 2026-04-24 10:00 it rang"}) == []
    )


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("SOUL.md", "x" * 1001, LintRule.TRUNCATED),
        ("rules.md", "x" * 1001, LintRule.TRUNCATED),
        ("GUARDRAILS.md", "x" * 1001, LintRule.REFUSED),
        ("SOUL.md", "{{AGENT_NAMES}}", LintRule.PLACEHOLDER),
        ("SOUL.md", "for {{HUMAN_NAME}}", LintRule.PLACEHOLDER),
        ("SOUL.md", f"use {KEY}", LintRule.SECRET),
        ("elsewhere.md", f"use {KEY}", LintRule.SECRET),
        ("SOUL.md", "last seen 2026-04-24T10:00Z", LintRule.UNSTABLE),
        ("AGENTS.md", "written 2026-04-24 10:00", LintRule.UNSTABLE),
    ],
)
def test_a_flaw_is_told_by_its_file(path: str, text: str, fault: LintRule) -> None:
    assert found({path: text}) == [(fault, path)]


def test_a_placeholder_in_what_is_served_as_it_is_is_dead() -> None:
    assert found({"SOUL.md": "{{AGENT_NAME}}"}, None) == [(LintRule.PLACEHOLDER, "SOUL.md")]


def test_what_cannot_be_had_and_what_is_not_there_are_told() -> None:
    soul = PromptDocument(None, "agent", 1, "its bytes are gone")
    served = {Path("SOUL.md"): soul, Path("USER.md"): PromptDocument(b"\xff", "agent", 1)}
    told = lint_prompt(served, {}, WISH)
    assert [(each.rule, each.path, each.text) for each in told] == [
        (LintRule.EXTRA_DOC, "rules.md", "listed in extraDocs: no such file"),
        (LintRule.UNREADABLE, "SOUL.md", "its bytes are gone"),
        (LintRule.UNREADABLE, "USER.md", "not text"),
    ]


@given(st.dictionaries(st.sampled_from(["SOUL.md", "rules.md", "MEMORY.md"]), st.text(max_size=99)))
def test_a_flaw_never_says_what_a_file_holds(texts: dict[str, str]) -> None:
    marked = {path: f"{text} zebra {KEY} {{{{NOPE}}}}" for path, text in texts.items()}
    stored = {Path(path): LintInput(text.encode(), None) for path, text in marked.items()}
    served = {path: PromptDocument(file.content, "agent", 1) for path, file in stored.items()}
    for flaw in lint_prompt(served, stored, WISH):
        assert "zebra" not in flaw.text
        assert KEY not in flaw.text
