"""Files that an agent writes itself: read, listed and changed by the tool `memory`.

Policy says which they are (`agentWritable`), whoever makes the call. Contents are unrendered, as an
editor sees them.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from carrel.actions.files import files
from carrel.actions.files.commit_results import ChangeResult
from carrel.actions.files.file_commit import CommitOptions, commit_files
from carrel.actions.files.rewrite import find_file, read_stored
from carrel.actions.memory.memory_files import load_writable_scope
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, CredentialKind
from carrel.core.errors import Busy, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.compose import File
from carrel.core.overlay.file_changes import ChangeKind, FileChange
from carrel.core.overlay.file_classes import matches_any
from carrel.core.overlay.write_condition import WriteCondition
from carrel.core.redaction.redactor import RedactionResult
from carrel.ports import Ports


class OwnFiles(Struct, frozen=True):
    """The agent-writable files of an agent, with the caller and run that use them."""

    ports: Ports
    actor: Actor
    stack: Stack
    writable: tuple[str, ...]
    """Patterns of the files."""
    run: str | None = None

    def contains(self, path: Path) -> bool:
        return matches_any(path, self.writable)


class ChangedText(Struct, frozen=True):
    """Content of a file after a change, as it is stored."""

    text: str
    redacted: RedactionResult
    version: int


class OwnDirectory(Struct, frozen=True):
    """What is below a directory."""

    files: Mapping[Path, File]
    directories: Sequence[Path]
    """Those that exist by themselves."""

    @property
    def exists(self) -> bool:
        return bool(self.files or self.directories)


async def open_own_files(
    ports: Ports, actor: Actor, stack: Stack, run: str | None = None
) -> OwnFiles:
    """Open the files that policy gives to an agent."""
    rules = await load_rules(ports, actor.tenant)
    return OwnFiles(ports, actor, stack, rules.policy.agent_writable, run)


async def find_own_file(own: OwnFiles, path: Path) -> File | None:
    """Find a file; None if there is none, or if it is not the agent's to write."""
    return await find_file(own.ports, own.stack, path) if own.contains(path) else None


async def list_own_files(own: OwnFiles, directory: Path | None) -> OwnDirectory:
    """List everything below a directory, or below the root."""
    prefix = f"{directory}/" if directory else ""
    view = await files.load_view(own.ports, own.stack, prefix)
    by_path = {path: file for path, file in view.workspace.files.items() if own.contains(path)}
    directories = [path for path in view.layers[0].directories if own.contains(path)]
    if directory is not None and own.contains(directory):
        [nearest, *_] = await own.ports.trees.read(own.stack, (directory,))
        head = nearest.heads.get(directory)
        directories += [directory] if head is not None and head.directory is not None else []
    return OwnDirectory(by_path, directories)


async def read_own_text(own: OwnFiles, file: File) -> str:
    """Read the unrendered text of a file. Raises ValidationError if it is not text."""
    content = await read_stored(own.ports, file)
    try:
        if b"\0" not in content:
            return content.decode()
    except UnicodeDecodeError:
        pass
    raise ValidationError(f"{file.path} is not text")


async def create_own_file(own: OwnFiles, path: Path, text: str, reason: str) -> ChangedText:
    """Create a file. Raises WorkspaceConflict if it exists."""
    condition = WriteCondition(absent=True)
    change = FileChange(ChangeKind.PUT, path, content=text.encode(), condition=condition)
    return _changed_text(await _commit(own, [change], reason))


@retry_on_conflict()
async def edit_own_file(
    own: OwnFiles, path: Path, change_text: Callable[[str], str], reason: str
) -> ChangedText:
    """Change the text of a file; read and change it again if another writer was faster.

    Raises NotFound, and what `change_text` raises.
    """
    file = await find_own_file(own, path)
    if file is None:
        raise NotFound(f"no such file: {path}")
    text = await asyncio.to_thread(change_text, await read_own_text(own, file))
    change = FileChange(
        ChangeKind.PUT,
        path,
        content=text.encode(),
        type=file.entry.type,
        condition=WriteCondition(frozenset({file.etag})),
    )
    try:
        return _changed_text(await _commit(own, [change], reason))
    except WorkspaceConflict:
        raise Busy.with_conflicts(str(path)) from None


async def delete_own(own: OwnFiles, path: Path, reason: str) -> None:
    """Delete a file or a directory with everything in it. Raises NotFound."""
    await _commit(own, [FileChange(ChangeKind.DELETE, path, recursive=True)], reason)


async def move_own(own: OwnFiles, source: Path, target: Path, reason: str) -> None:
    """Move a file or a directory; its history follows.

    Raises NotFound, and WorkspaceConflict if a file is at the target.
    """
    condition = WriteCondition(absent=True)
    change = FileChange(ChangeKind.MOVE, target, source, condition=condition)
    await _commit(own, [change], reason)


async def _commit(
    own: OwnFiles, changes: Sequence[FileChange], reason: str
) -> tuple[ChangeResult, ...]:
    """Commit with the rights of the agent, if the caller may change what it remembers."""
    [scope, *_] = own.stack
    await load_writable_scope(own.ports, own.actor, scope.name)
    as_agent = dataclasses.replace(own.actor, kind=CredentialKind.AGENT)
    options = CommitOptions(reason, own.run)
    result = await commit_files(own.ports, own.stack, as_agent, changes, options)
    return result.changes


def _changed_text(changes: Sequence[ChangeResult]) -> ChangedText:
    [change] = changes
    assert change.redaction is not None
    version = change.file.version if change.file else change.version
    return ChangedText(change.redaction.content.decode(), change.redaction, version)
