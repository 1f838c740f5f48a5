"""Index of the skills in a prompt: a line with name and description for each, within a budget.

Deterministic: skills are in order of name. If the lines do not fit, descriptions are shortened to
one common length; if that does not suffice either, the last skills are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carrel.core.overlay.placeholders import flatten_text
from carrel.core.skills.skill_definition import SkillDefinition

SKILL_TOOL: Final = "skill"
"""Name of the tool that reads skills."""
_START: Final = (
    "<available_skills>\n"
    f"Before a task that fits one of these skills, read it with the tool `{SKILL_TOOL}` and follow"
    " it."
)
_END: Final = "</available_skills>"
_MIN_DESCRIPTION_CHARS: Final = 40
"""Shorter descriptions say too little; skills are left out instead."""
_ELLIPSIS: Final = "…"


class PromptSkill(Struct, frozen=True):
    """A skill that may be listed in a prompt, and where its SKILL.md comes from."""

    definition: SkillDefinition
    source: str | None = None
    version: int | None = None
    is_cacheable: bool = True
    """False if its SKILL.md could not be loaded and may be available later."""


class SkillIndex(Struct, frozen=True):
    text: str
    """Empty if no skill fits."""
    included: frozenset[str]
    """Names of the skills with a line."""
    shortened: frozenset[str]
    """Names of those whose description is cut."""


def build_skill_index(skills: Sequence[SkillDefinition], limit: int) -> SkillIndex:
    """Index of the valid skills that has at most `limit` characters."""
    ordered = sorted((skill for skill in skills if skill.is_valid), key=lambda skill: skill.name)
    descriptions = [format_description(skill.description) for skill in ordered]
    max_chars = _fitting_length(ordered, descriptions, limit)
    lines = [
        _line(skill.name, description, max_chars)
        for skill, description in zip(ordered, descriptions, strict=True)
    ]
    omitted = 0
    while lines and len(_render(lines, omitted)) > limit:
        lines.pop()
        omitted += 1
    names = [skill.name for skill in ordered[: len(lines)]]
    shortened = (
        name for name, text in zip(names, descriptions, strict=False) if len(text) > max_chars
    )
    text = _render(lines, omitted) if lines else ""
    return SkillIndex(text, frozenset(names), frozenset(shortened))


def _fitting_length(
    skills: Sequence[SkillDefinition], descriptions: Sequence[str], limit: int
) -> int:
    """Greatest length of descriptions with which all lines fit, or the least that is allowed."""

    def fits(max_chars: int) -> bool:
        lines = map(
            _line, (skill.name for skill in skills), descriptions, [max_chars] * len(skills)
        )
        return len(_render(list(lines), 0)) <= limit

    low, high = _MIN_DESCRIPTION_CHARS, max(map(len, descriptions), default=0)
    if high <= low or fits(high):
        return max(low, high)
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _render(lines: Sequence[str], omitted: int) -> str:
    rest = [f"{omitted} more: call `{SKILL_TOOL}` without a name."] if omitted else []
    return "\n".join((_START, *lines, *rest, _END))


def _line(name: str, description: str, max_chars: int) -> str:
    if len(description) > max_chars:
        description = description[: max_chars - 1].rstrip() + _ELLIPSIS
    return f"- {name}: {description}"


def format_description(description: str) -> str:
    """Description as one line of visible text that cannot close the block."""
    return flatten_text(description).replace("<", "&lt;")
