"""Saves output that is too long for a result as files of the workspace."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from carrel.actions.sandbox import workspace_files
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.errors import Refusal
from carrel.core.identifiers import Path
from carrel.core.sessions.shared_session_visibility import output_directory
from carrel.ports.sandbox import CommandResult

MAX_SAVED_BYTES: Final = 2**20
"""Bytes of stdout and of stderr that are saved."""


class SavedOutput(Struct, frozen=True):
    """Files with a command's output, and messages for the caller."""

    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NO_SAVED_OUTPUT: Final = SavedOutput()


async def save_output(
    workspace: WorkspaceFiles, id: str, result: CommandResult, limit: int
) -> SavedOutput:
    """Save each stream that exceeds the limit; a workspace without room is reported."""
    paths: list[str] = []
    notes: list[str] = []
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if len(text) <= limit:
            continue
        path = Path(f"{output_directory(workspace.audience)}/{id}.{name}.txt")
        try:
            await workspace_files.write(workspace, path, text)
        except Refusal as refusal:
            notes.append(f"[{name} was not saved: {refusal}]")
            continue
        paths.append(path.text)
        notes.append(f"[{name} was cut; the file {path} has {len(text)} bytes of it]")
    return SavedOutput(tuple(paths), tuple(notes))
