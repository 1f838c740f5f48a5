"""Skills of an agent as files of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carrel.actions.skills.artifacts import can_give_away, load_served
from carrel.actions.skills.skills import LoadedSkill
from carrel.core.identifiers import Path
from carrel.core.overlay.compose import File
from carrel.core.skills.sandbox_directory import SANDBOX_DIRECTORY
from carrel.core.store.blob import Blob
from carrel.core.store.entry import FileAttributes
from carrel.ports import Ports
from carrel.ports.blobs import hash_content
from carrel.ports.sandbox import FileKind, InputFile

_MODES: Final = {FileKind.FILE: 0o444, FileKind.EXECUTABLE: 0o555}
_INTERPRETER_MARK: Final = b"#!"


class CommandSkills(Struct, frozen=True):
    """Read-only files and their directories, for the working directory of a command."""

    files: Mapping[Path, InputFile] = {}

    @property
    def directories(self) -> Mapping[Path, FileAttributes]:
        return {parent: FileAttributes() for path in self.files for parent in path.parents}


NO_SKILLS: Final = CommandSkills()


async def load_command_skills(ports: Ports, skills: tuple[LoadedSkill, ...]) -> CommandSkills:
    """Load the valid skills as they are served; a script that names its interpreter can be run."""
    input_files: dict[Path, InputFile] = {}
    for skill in filter(can_give_away, skills):
        served = await load_served(ports, skill.folder)
        for path, content in (served or {}).items():
            blob = await _store_rendered(ports, skill.folder.files[path], content)
            kind = _kind(content)
            input_file = InputFile(kind, blob, _MODES[kind])
            input_files[Path(f"{SANDBOX_DIRECTORY}/{skill.name}/{path}")] = input_file
    return CommandSkills(input_files)


async def _store_rendered(ports: Ports, file: File, content: bytes) -> Blob:
    """Return the blob of a served content; nothing refers to one that was rendered."""
    if file.variables is None or await hash_content(content) == file.blob.digest:
        return file.blob
    [blob] = await ports.blobs.put([content])
    return blob


def _kind(content: bytes) -> FileKind:
    return FileKind.EXECUTABLE if content.startswith(_INTERPRETER_MARK) else FileKind.FILE
