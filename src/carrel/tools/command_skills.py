"""Skills in the directory of a command: which ones, and a note on changes."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.actions.skills.command_skills import NO_SKILLS, CommandSkills, load_command_skills
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.config import is_allowed
from carrel.core.skills.prompt_index import SKILL_TOOL
from carrel.core.skills.sandbox_directory import (
    READ_ONLY_NOTE,
    is_in_sandbox_directory,
    is_reserved_for_skills,
)
from carrel.ports.sandbox import CommandResult, CommandSpec
from carrel.tools.tool import ToolContext


async def load_skills(context: ToolContext, *, is_persistent: bool) -> CommandSkills:
    """Load the skills that a command gets; none if the agent may not read skills.

    All agents of a workspace share its persistent instance, so there are no own files of a private
    agent in it.
    """
    if not is_allowed(context.config.allowed_tools, SKILL_TOOL):
        return NO_SKILLS
    skills = await context.list_skills()
    if is_persistent and not agent_from_record(context.agent).is_shared:
        skills = tuple(skill for skill in skills if not skill.folder.has_overrides)
    return await load_command_skills(context.ports, skills)


def skill_notes(spec: CommandSpec, result: CommandResult) -> Sequence[str]:
    """Return a note if a command changed the skills that it was given, or wrote in their place."""
    has_skills = any(map(is_in_sandbox_directory, spec.files or ()))
    is_written = any(map(is_reserved_for_skills, result.changed))
    is_deleted = has_skills and any(map(is_in_sandbox_directory, result.deleted))
    return (READ_ONLY_NOTE,) if is_written or is_deleted else ()
