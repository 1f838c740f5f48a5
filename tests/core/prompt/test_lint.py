"""Prompt lint reports flaws before a model reads the prompt."""

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

VALUES = PlaceholderValues(agent_name="Kate")
INPUTS = PromptInputs(Audience.MAIN, date(2026, 4, 24), ("rules.md",), 10_000, 1_000)
KEY = "ghp_" + "a1B2" * 9


def lint(
    texts: dict[str, str], variables: PlaceholderValues | None = VALUES
) -> list[tuple[str, str]]:
    stored = {Path(path): LintInput(text.encode(), variables) for path, text in texts.items()}
    served = {
        path: PromptDocument(
            render_bytes(file.content, variables) if variables else file.content, "agent", 1
        )
        for path, file in stored.items()
        if path.text != "elsewhere.md"
    }
    all_texts = {"rules.md": "r", **texts}
    served.setdefault(Path("rules.md"), PromptDocument(all_texts["rules.md"].encode(), "agent", 1))
    return [(flaw.rule, flaw.path) for flaw in lint_prompt(served, stored, INPUTS)]


def test_a_correct_prompt_has_no_flaws() -> None:
    texts = {"SOUL.md": "I am {{AGENT_NAME}}, since 2026-04-01.", "IDENTITY.md": "- Name: (pick)"}
    assert (
        lint(texts | {"USER.md": " ", "notes/2026-04-24.md": "at 2026-04-24 10:00 it rang"}) == []
    )


@pytest.mark.parametrize(
    ("path", "text", "rule"),
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
def test_a_flaw_names_its_rule_and_file(path: str, text: str, rule: LintRule) -> None:
    assert lint({path: text}) == [(rule, path)]


def test_a_placeholder_in_a_file_served_verbatim_is_reported() -> None:
    assert lint({"SOUL.md": "{{AGENT_NAME}}"}, None) == [(LintRule.PLACEHOLDER, "SOUL.md")]


def test_unreadable_and_missing_files_are_reported() -> None:
    soul = PromptDocument(None, "agent", 1, "its bytes are gone")
    served = {Path("SOUL.md"): soul, Path("USER.md"): PromptDocument(b"\xff", "agent", 1)}
    flaws = lint_prompt(served, {}, INPUTS)
    assert [(flaw.rule, flaw.path, flaw.text) for flaw in flaws] == [
        (LintRule.EXTRA_DOC, "rules.md", "listed in extraDocs: no such file"),
        (LintRule.UNREADABLE, "SOUL.md", "its bytes are gone"),
        (LintRule.UNREADABLE, "USER.md", "not text"),
    ]


@given(st.dictionaries(st.sampled_from(["SOUL.md", "rules.md", "MEMORY.md"]), st.text(max_size=99)))
def test_a_flaw_never_contains_the_content_of_a_file(texts: dict[str, str]) -> None:
    contents = {path: f"{text} zebra {KEY} {{{{NOPE}}}}" for path, text in texts.items()}
    stored = {Path(path): LintInput(text.encode(), None) for path, text in contents.items()}
    served = {path: PromptDocument(file.content, "agent", 1) for path, file in stored.items()}
    for flaw in lint_prompt(served, stored, INPUTS):
        assert "zebra" not in flaw.text
        assert KEY not in flaw.text
