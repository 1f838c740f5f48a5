"""Blocks of a prompt about skills: the index, and the outcome for each skill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from carrel.core.prompt.blocks import BlockStatus, PromptBlock
from carrel.core.skills.prompt_index import PromptSkill, SkillIndex, build_skill_index
from carrel.core.skills.skill_definition import SKILLS_PREFIX

SKILLS_BLOCK: Final = "SKILLS"
SKILL_BLOCK_PREFIX: Final = "SKILL — "
_HEADING: Final = f"# {SKILLS_BLOCK}\n"
_NO_VALID_SKILL: Final = "no valid skill"
_NO_INDEX: Final = "skillsChars is 0, or the agent may not call the tool `skill`"


def build_skill_blocks(
    skills: Sequence[PromptSkill], skills_chars: int, remaining: int
) -> tuple[PromptBlock, ...]:
    """Block of the index, then a block without text per skill.

    The index has at most `skills_chars` characters, and no more than remain in the prompt.
    """
    if not skills:
        return ()
    limit = max(min(skills_chars, remaining), 0)
    reason = f"the index of skills may have {skills_chars} characters"
    reason = f"{reason}; of the prompt {limit} remain" if limit < skills_chars else reason
    reason = reason if skills_chars else _NO_INDEX
    definitions = [skill.definition for skill in skills]
    index = build_skill_index(definitions, max(limit - len(_HEADING), 0))
    blocks = [_skill_block(skill, index, reason) for skill in skills]
    is_cut = any(
        block.status is not BlockStatus.INCLUDED
        for block, definition in zip(blocks, definitions, strict=True)
        if definition.is_valid
    )
    return (_index_block(index, reason if is_cut else ""), *blocks)


def _index_block(index: SkillIndex, reason: str) -> PromptBlock:
    """Block of the index; `reason` says why it lacks something."""
    if index.text:
        status = BlockStatus.TRUNCATED if reason else BlockStatus.INCLUDED
        text = _HEADING + index.text
        return PromptBlock(SKILLS_BLOCK, SKILLS_PREFIX, status, text, reason=reason)
    return PromptBlock(
        SKILLS_BLOCK, SKILLS_PREFIX, BlockStatus.OMITTED, reason=reason or _NO_VALID_SKILL
    )


def _skill_block(skill: PromptSkill, index: SkillIndex, limit_reason: str) -> PromptBlock:
    """Outcome for one skill; its line is part of the index."""
    definition = skill.definition
    status, reason = BlockStatus.INCLUDED, ""
    if not definition.is_valid:
        status, reason = BlockStatus.OMITTED, "; ".join(definition.problems)
    elif definition.name not in index.included:
        status, reason = BlockStatus.OMITTED, limit_reason
    elif definition.name in index.shortened:
        status, reason = BlockStatus.TRUNCATED, f"description shortened: {limit_reason}"
    return PromptBlock(
        f"{SKILL_BLOCK_PREFIX}{definition.name}",
        definition.path,
        status,
        source=skill.source,
        version=skill.version,
        reason=reason,
        is_cacheable=skill.is_cacheable,
    )
