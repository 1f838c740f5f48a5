"""Skills as they are given away: contents as served, and one file or archive for each skill."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carrel.actions.files import files
from carrel.actions.skills.skills import LoadedSkill
from carrel.core.files.file_kinds import EXECUTABLE, LINK, file_kind
from carrel.core.identifiers import Digest, digest
from carrel.core.overlay.compose import File, Workspace
from carrel.core.skills.skill_definition import SKILL_FILE_NAME
from carrel.core.skills.skill_folder import SkillFolder
from carrel.ports import Ports
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES

MAX_SKILL_FILES: Final = 512
MAX_SKILL_BYTES: Final = 16 * 2**20
"""Larger skills are not given away: clients need not accept them."""
SKILL_MD: Final = "skill-md"
ARCHIVE: Final = "archive"
_MEDIA_TYPES: Final = {SKILL_MD: "text/markdown", ARCHIVE: "application/zip"}
_FIRST_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Earliest date of a zip archive, given to every file so that equal skills have equal archives."""


class SkillArtifact(Struct, frozen=True):
    """A skill as one file: its SKILL.md, or an archive if it has more files."""

    kind: str
    content: bytes

    @property
    def digest(self) -> Digest:
        return digest(self.content)

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES[self.kind]


def plain_files(folder: SkillFolder) -> Mapping[str, File]:
    """Files of a skill without symbolic links, by path in the folder."""
    return {path: file for path, file in folder.files.items() if file_kind(file.entry.type) != LINK}


def can_give_away(skill: LoadedSkill) -> bool:
    """Whether a skill is valid and small enough for clients."""
    served = plain_files(skill.folder).values()
    size = sum(file.blob.size for file in served)
    return skill.definition.is_valid and len(served) <= MAX_SKILL_FILES and size <= MAX_SKILL_BYTES


async def load_served(ports: Ports, folder: SkillFolder) -> Mapping[str, bytes] | None:
    """Load the files of a skill as they are served; None if one is damaged."""
    served = plain_files(folder)
    workspace = Workspace({file.path: file for file in served.values()})
    contents = await files.read_contents(ports, workspace)
    if contents.failed:
        return None
    return {path: contents.contents[file.path] for path, file in served.items()}


async def load_artifact(ports: Ports, skill: LoadedSkill) -> SkillArtifact | None:
    """Load what clients download; None if the skill is invalid, too large or damaged."""
    contents = await load_served(ports, skill.folder) if can_give_away(skill) else None
    if contents is None:
        return None
    if list(contents) == [SKILL_FILE_NAME]:
        return SkillArtifact(SKILL_MD, contents[SKILL_FILE_NAME])
    executable = {
        path
        for path, file in skill.folder.files.items()
        if file_kind(file.entry.type) == EXECUTABLE
    }
    if sum(map(len, contents.values())) <= THREAD_THRESHOLD_BYTES:
        return SkillArtifact(ARCHIVE, _build_archive(contents, executable))
    archive = await asyncio.to_thread(_build_archive, contents, executable)
    return SkillArtifact(ARCHIVE, archive)


def _build_archive(contents: Mapping[str, bytes], executable: set[str]) -> bytes:
    """Zip archive with the skill's folder as root.

    Equal skills give equal bytes on every machine: nothing is compressed, since that depends on
    the version of zlib.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(contents, key=str.encode):
            row = zipfile.ZipInfo(path, _FIRST_DATE)
            row.create_system = 3  # Unix, which the mode belongs to
            row.external_attr = (0o100755 if path in executable else 0o100644) << 16
            archive.writestr(row, contents[path])
    return target.getvalue()
