"""Tool `skill`: lists an agent's skills and reads one, or a file of it."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.files import files
from carrel.actions.skills.skills import LoadedSkill, find_skill
from carrel.core.errors import NotFound, ValidationError
from carrel.core.files.file_kinds import LINK, file_kind
from carrel.core.runs import Audience
from carrel.core.skills.prompt_index import SKILL_TOOL, format_description
from carrel.core.skills.sandbox_directory import VARIABLE
from carrel.core.skills.skill_definition import SKILL_FILE_NAME
from carrel.core.skills.skill_folder import are_skills_visible
from carrel.tools.tool import (
    Tool,
    ToolArguments,
    ToolContext,
    ToolReply,
    ToolResultFields,
    structured_reply,
)

MAX_CHARS: Final = 50_000
"""Characters of a file per call."""


class SkillArguments(ToolArguments, frozen=True):
    name: Annotated[
        str, Meta(max_length=255, description="Name of the skill; without it, all are listed.")
    ] = ""
    path: Annotated[
        str,
        Meta(
            max_length=1024,
            description="File of the skill to read, such as references/api.md; default: SKILL.md.",
        ),
    ] = ""
    offset: Annotated[
        int, Meta(ge=0, description="First character to return, to continue a long file.")
    ] = 0


class SkillSummary(ToolResultFields, frozen=True):
    name: str
    description: str


class InvalidSkill(ToolResultFields, frozen=True):
    name: str
    problems: tuple[str, ...]


class SkillList(ToolResultFields, frozen=True):
    skills: tuple[SkillSummary, ...]
    invalid: tuple[InvalidSkill, ...]
    """Skills that cannot be used, and why."""


class SkillContent(ToolResultFields, frozen=True):
    """Instructions of a skill, or the content of one of its files."""

    name: str
    path: str
    content: str
    digest: str
    """Of the whole skill."""
    files: tuple[str, ...]
    """All files of the skill."""
    next_offset: int | UnsetType = UNSET
    """Set if the file is longer."""


async def _run(context: ToolContext, args: SkillArguments) -> ToolReply:
    skills = await context.list_skills()
    if args.name:
        return await _read(context, args, find_skill(skills, args.name))
    if args.path:
        raise ValidationError("path needs the name of a skill")
    listed = tuple(
        SkillSummary(name=skill.name, description=skill.definition.description)
        for skill in skills
        if skill.definition.is_valid
    )
    invalid = tuple(
        InvalidSkill(name=skill.name, problems=skill.definition.problems)
        for skill in skills
        if not skill.definition.is_valid
    )
    lines = [f"- {skill.name}: {format_description(skill.description)}" for skill in listed]
    lines += [f"- {skill.name} is invalid: {'; '.join(skill.problems)}" for skill in invalid]
    return structured_reply(
        "\n".join(lines) or "There are no skills.", SkillList(skills=listed, invalid=invalid)
    )


async def _read(context: ToolContext, args: SkillArguments, skill: LoadedSkill) -> ToolReply:
    if not skill.definition.is_valid:
        problems = "; ".join(skill.definition.problems)
        raise ValidationError(f"the skill {skill.name} is invalid: {problems}")
    path = args.path or SKILL_FILE_NAME
    text = skill.definition.body if path == SKILL_FILE_NAME else await _text(context, skill, path)
    content = text[args.offset : args.offset + MAX_CHARS]
    end = args.offset + len(content)
    result = SkillContent(
        name=skill.name,
        path=path,
        content=content,
        digest=skill.folder.digest,
        files=tuple(skill.folder.files),
        next_offset=end if end < len(text) else UNSET,
    )
    return structured_reply("\n\n".join([content, *_notes(result)]), result)


async def _text(context: ToolContext, skill: LoadedSkill, path: str) -> str:
    """Text of a bundled file. Raises NotFound, and ValidationError if it is not text."""
    file = skill.folder.files.get(path.removeprefix("./"))
    if file is None:
        raise NotFound(f"the skill {skill.name} has no file {path}")
    if file_kind(file.entry.type) == LINK:
        raise ValidationError(f"{path} is a link; links are not followed")
    try:
        return (await files.read_content(context.ports, file)).decode()
    except UnicodeDecodeError:
        raise ValidationError(
            f"{path} is not text; commands find it at ${VARIABLE}/{skill.name}/{path}"
        ) from None


def _notes(result: SkillContent) -> list[str]:
    """Notes for the model after the content."""
    notes = []
    if result.next_offset is not UNSET:
        notes.append(f"[continue with offset {result.next_offset}]")
    others = [path for path in result.files if path != SKILL_FILE_NAME]
    if result.path == SKILL_FILE_NAME and others:
        directory = f"${VARIABLE}/{result.name}"
        notes.append(
            f"[files: {', '.join(others)}; read one with path; in bash they are in {directory}]"
        )
    return notes


TOOL: Final = Tool(
    SKILL_TOOL,
    "Lists your skills, or reads the instructions of one by name. Read a skill before a task that "
    "fits it, then read the files that it refers to as you need them.",
    SkillArguments,
    _run,
    private_only=not are_skills_visible(Audience.SHARED),
    results=(SkillList, SkillContent),
)
