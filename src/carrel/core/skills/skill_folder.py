"""Skills of a workspace: the folders below `skills/`, and the digest of each.

All that reads, lists or mounts skills finds them here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Digest, Path
from carrel.core.overlay.agent_resolution import FileSource
from carrel.core.overlay.compose import File
from carrel.core.runs import Audience
from carrel.core.sessions.shared_session_visibility import is_visible
from carrel.core.skills.skill_definition import SKILL_FILE_NAME, SKILLS_PREFIX

SKILLS_DIRECTORY: Final = Path(SKILLS_PREFIX.removesuffix("/"))
SKILLS_PATTERN: Final = f"{SKILLS_PREFIX}**"
"""Pattern of a rule that gives every file of every skill one class."""

_OVERRIDES: Final = frozenset({FileSource.OVERRIDE, FileSource.PINNED_OVERRIDE})


class SkillFolder(Struct, frozen=True):
    """Files of one skill, by path relative to its folder, in order of path."""

    name: str
    files: Mapping[str, File]

    @property
    def main_file(self) -> File | None:
        """SKILL.md; None if the folder has none."""
        return self.files.get(SKILL_FILE_NAME)

    @property
    def has_overrides(self) -> bool:
        """Whether a file is an agent's own, neither inherited nor as reviewed."""
        return any(file.source_label in _OVERRIDES for file in self.files.values())

    @property
    def digest(self) -> Digest:
        """Digest of the paths and the stored contents of all files."""
        return compute_skill_digest({path: file.blob.digest for path, file in self.files.items()})


def group_skills(files: Mapping[Path, File]) -> tuple[SkillFolder, ...]:
    """Folders below `skills/`, in order of name; a file directly in it belongs to none."""
    by_name: dict[str, dict[str, File]] = {}
    for path in sorted(files, key=lambda path: path.text.encode()):
        if parts := split_skill_path(path):
            name, relative_path = parts
            by_name.setdefault(name, {})[relative_path] = files[path]
    return tuple(SkillFolder(name, by_name[name]) for name in sorted(by_name))


def split_skill_path(path: Path) -> tuple[str, str] | None:
    """Name of the skill that a file belongs to, and its path in the folder."""
    directory, _, rest = path.text.partition("/")
    name, _, relative_path = rest.partition("/")
    return (name, relative_path) if directory == SKILLS_DIRECTORY.text and relative_path else None


def compute_skill_digest(digests: Mapping[str, Digest]) -> Digest:
    """Digest of a skill from those of its files, as Agent Skills Discovery defines it.

    SHA-256 over a line for each file in order of the bytes of its path: the path in the folder, a
    NUL, the SHA-256 of the content in hex and a line feed.
    """
    lines = hashlib.sha256()
    for path in sorted(digests, key=str.encode):
        lines.update(f"{path}\0{digests[path].removeprefix('sha256:')}\n".encode())
    return Digest(f"sha256:{lines.hexdigest()}")


def are_skills_visible(audience: Audience, *, is_shared_workspace: bool = False) -> bool:
    """Whether a session of this audience may see skills."""
    return is_visible(SKILLS_DIRECTORY, audience, is_shared_workspace=is_shared_workspace)
