"""Saves output that is too long for a result as files of the workspace."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from msgspec import Struct

from carrel.actions.files.file_commit import CommitOptions, commit_files
from carrel.actions.sandbox import workspace_files
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.errors import Refusal
from carrel.core.identifiers import Path
from carrel.core.overlay.file_changes import ChangeKind, FileChange
from carrel.core.sessions.shared_session_visibility import output_directory
from carrel.ports.sandbox import CommandResult

MAX_SAVED_BYTES: Final = 2**20
"""Bytes of stdout and of stderr that are saved."""
MAX_SAVED_FILES: Final = 100
"""Files of saved output in a directory; older ones are deleted, so that they fill no workspace."""
_NAME: Final = re.compile(r"call_[0-9a-f]{24}\.(?:stdout|stderr)\.txt")


class SavedOutput(Struct, frozen=True):
    """Files with a command's output, and messages for the caller."""

    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NO_SAVED_OUTPUT: Final = SavedOutput()


async def save_output(
    workspace: WorkspaceFiles, id: str, result: CommandResult, limit: int
) -> SavedOutput:
    """Save each stream that exceeds the limit; a workspace without room is reported."""
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    long_streams = {name: text for name, text in streams.items() if len(text) > limit}
    if not long_streams:
        return NO_SAVED_OUTPUT
    directory = output_directory(workspace.audience)
    await _delete_oldest(workspace, directory, room=len(long_streams))
    paths: list[str] = []
    notes: list[str] = []
    for name, text in long_streams.items():
        path = Path(f"{directory}/{id}.{name}.txt")
        try:
            await workspace_files.write(workspace, path, text)
        except Refusal as refusal:
            notes.append(f"[{name} was not saved: {refusal}]")
            continue
        paths.append(path.text)
        notes.append(f"[{name} was cut; the file {path} has {len(text)} bytes of it]")
    return SavedOutput(tuple(paths), tuple(notes))


async def _delete_oldest(workspace: WorkspaceFiles, directory: Path, room: int) -> None:
    """Delete the oldest saved output, until as many files as `room` can be added.

    If another command deletes the same files, or the caller may not, they stay until the next time.
    """
    prefix = f"{directory}/"
    [tree] = await workspace.ports.trees.read((workspace.scope,), prefix=prefix)
    saved = sorted(
        path
        for path, head in tree.heads.items()
        if head.entry and _NAME.fullmatch(path.text.removeprefix(prefix))
    )
    oldest = saved[: max(0, len(saved) + room - MAX_SAVED_FILES)]
    if not oldest:
        return
    changes = [FileChange(ChangeKind.DELETE, path) for path in oldest]
    options = CommitOptions(f"delete old output of commands in {directory}", workspace.run)
    with suppress(Refusal):
        await commit_files(workspace.ports, (workspace.scope,), workspace.actor, changes, options)
