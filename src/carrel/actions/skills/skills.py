"""Skills of a workspace or a run: listed, validated and read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carrel.actions.blob_contents import load_contents
from carrel.actions.files import files
from carrel.actions.runs import snapshots
from carrel.core.errors import NotFound
from carrel.core.files.file_kinds import LINK, file_kind
from carrel.core.identifiers import Digest, Path, Stack
from carrel.core.overlay.compose import File
from carrel.core.runs import Run
from carrel.core.skills.skill_definition import (
    SKILL_FILE_NAME,
    SKILLS_PREFIX,
    SkillDefinition,
    parse_skill,
)
from carrel.core.skills.skill_folder import (
    SkillFolder,
    are_skills_visible,
    group_skills,
    split_skill_path,
)
from carrel.ports import CorruptContent, Ports

_THREAD_THRESHOLD_BYTES: Final = 32_768
"""Size of all SKILL.md that are read on the event loop: YAML is slow to parse."""
_LINK_PROBLEM: Final = f"{SKILL_FILE_NAME} is a symbolic link; links are not followed"


class LoadedSkill(Struct, frozen=True):
    """A skill with what its SKILL.md says."""

    folder: SkillFolder
    definition: SkillDefinition
    is_damaged: bool = False
    """Whether the stored bytes of its SKILL.md are lost."""

    @property
    def name(self) -> str:
        return self.folder.name


async def list_skills(
    ports: Ports, stack: Stack, *, inherited_only: bool = False
) -> tuple[LoadedSkill, ...]:
    """List the skills of a workspace in order of name, invalid ones with their problems."""
    view = await files.load_view(ports, stack, SKILLS_PREFIX, inherited_only=inherited_only)
    return await load_skills(ports, view.workspace.files)


async def list_run_skills(ports: Ports, run: Run) -> tuple[LoadedSkill, ...]:
    """List the skills of a run's snapshot that the run may see.

    Raises NotFound if the snapshot was deleted.
    """
    return await load_skills(ports, await load_run_files(ports, run))


async def load_run_files(ports: Ports, run: Run) -> Mapping[Path, File]:
    """Return the files below `skills/` of a run's snapshot that the run may see."""
    if not are_skills_visible(run.mode, is_shared_workspace=run.scope.is_shared_workspace):
        return {}
    return (await snapshots.load_manifest(ports, run, SKILLS_PREFIX)).files


async def load_skills(ports: Ports, files_by_path: Mapping[Path, File]) -> tuple[LoadedSkill, ...]:
    """Read the SKILL.md of every skill among these files, in one batch."""
    folders = group_skills(files_by_path)
    main_files = [file for folder in folders if (file := folder.main_file)]
    contents = await load_contents(ports, [file.blob for file in main_files])
    if sum(file.blob.size for file in main_files) <= _THREAD_THRESHOLD_BYTES:
        return _read_skills(folders, contents)
    return await asyncio.to_thread(_read_skills, folders, contents)


def _read_skills(
    folders: tuple[SkillFolder, ...], contents: Mapping[Digest, bytes | CorruptContent]
) -> tuple[LoadedSkill, ...]:
    return tuple(_load_skill(folder, contents) for folder in folders)


def _load_skill(
    folder: SkillFolder, contents: Mapping[Digest, bytes | CorruptContent]
) -> LoadedSkill:
    file = folder.main_file
    if file is None:
        return LoadedSkill(folder, parse_skill(folder.name, None))
    if file_kind(file.entry.type) == LINK:  # the content of a link is its target path
        return LoadedSkill(folder, SkillDefinition(folder.name, problems=(_LINK_PROBLEM,)))
    stored = contents[file.blob.digest]
    if isinstance(stored, CorruptContent):
        return LoadedSkill(folder, SkillDefinition(folder.name, problems=(str(stored),)), True)
    return LoadedSkill(folder, parse_skill(folder.name, files.render_content(file, stored)))


def find_write_problems(file: File, content: bytes) -> tuple[str, ...]:
    """Why a written file is an invalid SKILL.md; empty for any other file."""
    parts = split_skill_path(file.path)
    if parts is None or parts[1] != SKILL_FILE_NAME:
        return ()
    return parse_skill(parts[0], files.render_content(file, content)).problems


def find_skill(skills: tuple[LoadedSkill, ...], name: str) -> LoadedSkill:
    """Return the skill of this name. Raises NotFound."""
    for skill in skills:
        if skill.name == name:
            return skill
    raise NotFound(f"no such skill: {name}")
