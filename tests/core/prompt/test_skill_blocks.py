"""Skills in prompts: position, budget and report."""

from __future__ import annotations

from datetime import date

import pytest
from msgspec.structs import replace

from carrel.core.identifiers import Path
from carrel.core.prompt.assembly import Prompt, PromptDocument, build_prompt
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.lint import LintFinding, LintRule, lint_prompt
from carrel.core.runs import Audience
from carrel.core.skills.prompt_index import PromptSkill
from carrel.core.skills.skill_definition import SkillDefinition

DAY = date(2026, 4, 24)
MAIN = PromptInputs(Audience.MAIN, DAY)
FILES = {
    Path(path): PromptDocument(path.encode(), "agent", 1)
    for path in ("AGENTS.md", "notes/2026-04-24.md", "MEMORY.md")
}
INDEX = """\
# SKILLS
<available_skills>
Before a task that fits one of these skills, read it with the tool `skill` and follow it.
- csv: Reads tables
- pdf: Reads pages
</available_skills>"""


def skill(name: str, description: str, *problems: str) -> PromptSkill:
    return PromptSkill(SkillDefinition(name, description, problems=problems), "template", 2)


SKILLS = [skill("csv", "Reads tables"), skill("pdf", "Reads pages")]


def outcomes(prompt: Prompt) -> dict[str, tuple[str, str]]:
    return {
        block.path: (block.status, block.reason)
        for block in prompt.blocks
        if block.path.startswith("skills/")
    }


def test_the_index_stands_between_agents_and_the_notes() -> None:
    prompt = build_prompt(FILES, MAIN, skills=SKILLS)
    assert prompt.text == (
        f"# AGENTS\nAGENTS.md\n\n{INDEX}\n\n# RECENT NOTES\n## 2026-04-24\nnotes/2026-04-24.md"
        "\n\n# MEMORY\nMEMORY.md"
    )
    assert outcomes(prompt) == {
        "skills/": ("kept", ""),
        "skills/csv/SKILL.md": ("kept", ""),
        "skills/pdf/SKILL.md": ("kept", ""),
    }
    [block] = [block for block in prompt.blocks if block.name == "SKILL — pdf"]
    assert (block.source, block.version, block.text) == ("template", 2, "")


def test_an_invalid_skill_is_left_out_with_its_problems() -> None:
    prompt = build_prompt({}, MAIN, skills=[*SKILLS, skill("x", "", "bad name", "bad field")])
    assert prompt.text == INDEX
    assert outcomes(prompt)["skills/x/SKILL.md"] == ("left out", "bad name; bad field")
    assert outcomes(prompt)["skills/"] == ("kept", "")
    prompt = build_prompt({}, MAIN, skills=[skill("x", "", "bad name")])
    assert (prompt.text, outcomes(prompt)["skills/"]) == ("", ("left out", "no valid skill"))


def test_the_index_stays_within_its_budget() -> None:
    long = [skill(name, name * 300) for name in "abc"]
    prompt = build_prompt({}, replace(MAIN, skills_chars=450), skills=long)
    reason = "the index of skills may have 450 characters"
    assert 430 < len(prompt.text) <= 450
    assert outcomes(prompt)["skills/"] == ("cut", reason)
    assert outcomes(prompt)["skills/a/SKILL.md"] == ("cut", f"description shortened: {reason}")
    prompt = build_prompt({}, replace(MAIN, skills_chars=240), skills=long)
    assert outcomes(prompt)["skills/a/SKILL.md"][0] == "cut"
    assert outcomes(prompt)["skills/c/SKILL.md"] == (
        "left out",
        "the index of skills may have 240 characters",
    )


def test_the_index_counts_as_part_of_the_prompt() -> None:
    prompt = build_prompt(FILES, replace(MAIN, prompt_chars=100), skills=SKILLS)
    assert len(prompt.text) <= 100
    assert outcomes(prompt)["skills/"] == (
        "left out",
        "the index of skills may have 8000 characters; of the prompt 80 remain",
    )
    inputs = replace(MAIN, prompt_chars=len(INDEX) + 25)
    prompt = build_prompt(FILES, inputs, skills=SKILLS)
    assert len(prompt.text) == len(INDEX) + 20


def test_without_a_budget_there_is_no_index() -> None:
    prompt = build_prompt(FILES, replace(MAIN, skills_chars=0), skills=SKILLS)
    assert "SKILLS" not in prompt.text
    reason = "skillsChars is 0, or the agent may not call the tool `skill`"
    assert set(outcomes(prompt).values()) == {("left out", reason)}


def test_a_shared_prompt_has_no_skills() -> None:
    prompt = build_prompt(FILES, replace(MAIN, mode=Audience.SHARED), skills=SKILLS)
    assert prompt.text == "# AGENTS\nAGENTS.md"
    assert outcomes(prompt) == {"skills/": ("left out", "private, and the audience is shared")}


def test_a_run_that_started_before_the_index_has_none() -> None:
    stored = dict(MAIN.to_run_variables())
    assert PromptInputs.from_run_variables(stored, Audience.MAIN, DAY) == MAIN
    stored["prompt:limits"] = "60000 12000"
    old = PromptInputs.from_run_variables(stored, Audience.MAIN, DAY)
    assert build_prompt(FILES, old, skills=SKILLS) != build_prompt(FILES, MAIN, skills=SKILLS)
    assert build_prompt(FILES, old, skills=SKILLS).text == build_prompt(FILES, MAIN).text


@pytest.mark.parametrize("extra_docs", [(), ("skills/pdf/SKILL.md",)])
def test_lint_names_invalid_skills_and_the_budget(extra_docs: tuple[str, ...]) -> None:
    document = PromptDocument(b"text", "template", 2)
    findings = lint_prompt(
        {Path("skills/pdf/SKILL.md"): document},
        {},
        replace(MAIN, extra_docs=extra_docs, skills_chars=200),
        skills=[*SKILLS, skill("x", "", "bad name")],
    )
    assert [finding for finding in findings if finding.rule is LintRule.SKILL] == [
        LintFinding(LintRule.SKILL, "skills/x/SKILL.md", "bad name")
    ]
    assert LintRule.UNSTABLE not in {finding.rule for finding in findings}
    lines = lint_prompt({}, {}, replace(MAIN, skills_chars=120), skills=SKILLS)
    assert {finding.path for finding in lines} == {
        "skills/",
        "skills/csv/SKILL.md",
        "skills/pdf/SKILL.md",
    }
