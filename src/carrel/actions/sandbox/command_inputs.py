"""Files and directories that a command in a workspace starts with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.files import file_kinds
from carrel.core.identifiers import Path
from carrel.core.sandbox.workspace_directories import (
    NEW_ROOT,
    RootDirectory,
    list_directories,
    mtime_of,
)
from carrel.core.skills.sandbox_directory import is_in_sandbox_directory, is_reserved_for_skills
from carrel.core.store.entry import Entry, FileAttributes, Head
from carrel.core.store.record import RecordChange, RecordType, decode_body, encode_body
from carrel.core.store.tree import Tree
from carrel.ports.sandbox import CommandResult, FileKind, InputFile

_KINDS: Final = {kind.value: kind for kind in FileKind}


class CommandInputs(Struct, frozen=True):
    """Workspace at the start of a command."""

    tree: Tree
    directories: Mapping[Path, FileAttributes]
    root: FileAttributes
    stored_root: RootDirectory

    @property
    def files(self) -> Mapping[Path, InputFile]:
        return {
            path: _input_file(head, head.entry)
            for path, head in self.tree.heads.items()
            if head.entry
        }


def _input_file(head: Head, entry: Entry) -> InputFile:
    kind = _KINDS[file_kinds.file_kind(entry.type)]
    mode = entry.attributes.mode if entry.attributes else None
    return InputFile(kind, entry.blob, mode, mtime_of(head, entry.attributes))


async def load_inputs(workspace: WorkspaceFiles) -> CommandInputs:
    """Load what a command starts with: the files that the session may see."""
    ports, scope = workspace.ports, workspace.scope
    [tree] = await ports.trees.read((scope,))
    [record] = await ports.records.get(scope.tenant, RecordType.ROOT_DIRECTORY, [scope.name])
    heads, directories = (
        {
            path: head
            for path, head in heads.items()
            if workspace.can_see(path) and not is_reserved(path)
        }
        for heads, is_reserved in (
            (tree.heads, is_reserved_for_skills),
            (tree.directories, is_in_sandbox_directory),
        )
    )
    visible = replace(tree, heads=heads, directories=directories)
    stored_root = NEW_ROOT if record is None else decode_body(record, RootDirectory)
    listed = list_directories(visible, stored_root)
    return CommandInputs(visible, listed.directories, listed.root, stored_root)


def root_change(
    start: CommandInputs, result: CommandResult, tree: Tree
) -> tuple[RecordChange, ...]:
    """Change of the root's attributes; the last of concurrent ones stays.

    The first change of a workspace by a command stores them too, since the time would otherwise
    follow that of the files.
    """
    if result.directories is None:
        return ()
    attributes = start.root if result.root is None else result.root
    stored = start.stored_root
    if (attributes.mode, attributes.mtime_ns) == (stored.mode, stored.mtime_ns):
        return ()
    root = RootDirectory(attributes.mode, attributes.mtime_ns, tree.revision)
    scope = tree.scope
    change = RecordChange(scope.tenant, RecordType.ROOT_DIRECTORY, scope.name, encode_body(root))
    return (change,)


def root_removal(workspace_id: str, tenant: str) -> RecordChange:
    """Change that deletes the root's attributes of a deleted workspace."""
    return RecordChange(tenant, RecordType.ROOT_DIRECTORY, workspace_id, None)
