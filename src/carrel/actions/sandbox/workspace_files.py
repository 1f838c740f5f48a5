"""File operations of agents' tools on a shared workspace: read, write, edit, find.

All of them work on the store. Links are reported as links and never followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.files import files
from carrel.actions.files.file_writer import FileWriter
from carrel.actions.files.files import WorkspaceView, WriteOptions, WriteResult
from carrel.actions.local_locks import local_lock
from carrel.actions.policy.tenant_rules import find_cached_rules, load_rules
from carrel.actions.retry import retry_on_conflict
from carrel.actions.sandbox.large_edit import LargeEdit
from carrel.core.access import Actor
from carrel.core.errors import Busy, NotFound, ValidationError, WorkspaceConflict
from carrel.core.files import file_kinds
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.compose import File
from carrel.core.overlay.directories import DirectoryEntry, list_entries
from carrel.core.overlay.write_condition import WriteCondition
from carrel.core.runs import Audience
from carrel.core.sandbox.file_tools import (
    NumberedLines,
    VisibleLines,
    check_match_count,
    compile_glob,
    relative_to,
    replace_text,
)
from carrel.core.sessions.shared_session_visibility import is_visible, require_visible
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Entry, Head
from carrel.ports import Ports
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES

LARGE_FILE_BYTES: Final = 2**20
"""Larger files are read in parts."""
_MAX_COUNTED_BYTES: Final = 16 * 2**20
"""The lines of a larger file are not counted."""
_MAX_LINE_BYTES: Final = 8 * 2**20
"""A longer line is read in pieces."""


class WorkspaceFiles(Struct, frozen=True):
    """Shared workspace with the caller, run and call that use it."""

    ports: Ports
    actor: Actor
    workspace: str
    run: str | None = None
    call: str | None = None
    """The caller's id of the tool call."""
    name: str | None = None
    """Server-wide unique id of the tool call."""
    audience: Audience = Audience.MAIN
    """Who takes part in the session of the call."""

    @property
    def scope(self) -> Scope:
        return Scope(self.actor.tenant, ScopeKind.WORKSPACE, self.workspace)

    def can_see(self, path: Path) -> bool:
        """Whether the session may see a file, or write one at this path."""
        return is_visible(path, self.audience, is_shared_workspace=True)

    def require_visible(self, path: Path) -> None:
        """Raise Forbidden for a path that the session may not see."""
        require_visible(path, self.audience, is_shared_workspace=True)

    def write_options(
        self, verb: str, path: Path, type: str, condition: WriteCondition
    ) -> WriteOptions:
        call_note = f" (call {self.call})" if self.call else ""
        return WriteOptions(condition, type, f"{verb} {path}{call_note}", self.run)


async def find_head(workspace: WorkspaceFiles, path: Path) -> Head | None:
    """Return the head of a file. Raises Forbidden if the session may not see it."""
    workspace.require_visible(path)
    [tree] = await workspace.ports.trees.read((workspace.scope,), (path,))
    head = tree.heads.get(path)
    return head if head and head.entry else None


async def list_heads(workspace: WorkspaceFiles) -> list[Head]:
    """List all files that the session may see, without links."""
    [tree] = await workspace.ports.trees.read((workspace.scope,))
    return [
        head
        for head in tree.heads.values()
        if head.entry
        and file_kinds.file_kind(head.entry.type) != file_kinds.LINK
        and workspace.can_see(head.path)
    ]


async def read_file(workspace: WorkspaceFiles, path: Path) -> tuple[Head, Entry, bytes]:
    """Read a file. Raises NotFound, and ValidationError for a link."""
    head, entry = await require_file(workspace, path)
    content = (await workspace.ports.blobs.get([entry.blob]))[entry.blob.digest]
    return head, entry, content


async def require_file(workspace: WorkspaceFiles, path: Path) -> tuple[Head, Entry]:
    """Return the head of a file. Raises NotFound, Forbidden; ValidationError for a link."""
    head = await find_head(workspace, path)
    if head is None or head.entry is None:
        raise NotFound(f"file not found: {path}")
    blob = head.entry.blob
    if file_kinds.file_kind(head.entry.type) == file_kinds.LINK:
        target = (await workspace.ports.blobs.get([blob]))[blob.digest].decode(errors="replace")
        raise ValidationError(f"{path} is a link to {target}; links are not followed")
    return head, head.entry


class FileLines(Struct, frozen=True):
    """Lines of a file."""

    head: Head
    entry: Entry
    visible: VisibleLines | None
    """None for a binary file."""


async def read_lines(
    workspace: WorkspaceFiles, path: Path, first: int, limit: int, max_bytes: int
) -> FileLines:
    """Read numbered lines of a file, and count all of them up to 16 MiB.

    A large file is read in parts. Raises as `require_file`.
    """
    head, entry = await require_file(workspace, path)
    lines = NumberedLines(first, limit, max_bytes)
    if entry.blob.size <= LARGE_FILE_BYTES:
        content = (await workspace.ports.blobs.get([entry.blob]))[entry.blob.digest]
        if file_kinds.is_binary(content):
            return FileLines(head, entry, None)
        lines.feed(content)
        return FileLines(head, entry, lines.visible(is_whole=True))
    is_text, is_whole = False, True
    async for part in read_line_parts(workspace.ports, entry.blob):
        if is_text and lines.is_done and entry.blob.size > _MAX_COUNTED_BYTES:
            is_whole = False
            break
        is_text = True
        await asyncio.to_thread(lines.feed, part)
    return FileLines(head, entry, lines.visible(is_whole=is_whole) if is_text else None)


async def read_line_parts(ports: Ports, blob: Blob) -> AsyncIterator[bytes]:
    """Yield a large text in parts that end at line ends; nothing of a binary file.

    A line of more than 8 MiB is yielded in pieces.
    """
    rest, is_first = b"", True
    async for part in ports.blobs.read_parts(blob):
        if is_first and file_kinds.is_binary(part):
            return
        is_first = False
        end = part.rfind(b"\n") + 1
        if end or len(rest) > _MAX_LINE_BYTES:
            end = end or len(part)
            yield rest + part[:end]
            rest = part[end:]
        else:
            rest += part
    if rest:
        yield rest


async def write(
    workspace: WorkspaceFiles, path: Path, content: bytes, expected: int | None = None
) -> WriteResult:
    """Replace a whole file; the later of two writers wins. Raises Forbidden.

    With `expected`, raises WorkspaceConflict if the file has another version; 0 means absent.
    """
    head = await find_head(workspace, path)
    old_type = head.entry.type if head and head.entry else None
    form = file_kinds.FILE if old_type is None else file_kinds.file_kind(old_type)
    form = file_kinds.FILE if form == file_kinds.LINK else form
    options = workspace.write_options(
        "write", path, file_kinds.entry_type(form, path, content, old_type), _condition(expected)
    )
    return await files.put(
        workspace.ports, (workspace.scope,), path, content, workspace.actor, options
    )


def _condition(expected: int | None) -> WriteCondition:
    if not expected:
        return WriteCondition(absent=expected == 0)
    return WriteCondition(frozenset([f'"v{expected}"']))


class EditedFile(Struct, frozen=True):
    """A file after an edit."""

    file: File
    redacted: tuple[str, ...]
    """Names of secrets that were replaced."""
    replacements: int


async def edit(
    workspace: WorkspaceFiles, path: Path, old: bytes, new: bytes, *, every: bool
) -> EditedFile:
    """Replace a text in a file, conditional on the version that was read.

    Retries on conflict, so two edits of different places both land. Edits of one file in this
    process are serialized, to prevent starvation.
    """
    async with local_lock(workspace.ports.store, workspace.scope, path):
        return await _edit_locked(workspace, path, old, new, every=every)


@retry_on_conflict()
async def _edit_locked(
    workspace: WorkspaceFiles, path: Path, old: bytes, new: bytes, *, every: bool
) -> EditedFile:
    ports, tenant = workspace.ports, workspace.actor.tenant
    policy = (find_cached_rules(ports, tenant) or await load_rules(ports, tenant)).policy
    check_size = policy.limits_of(workspace.scope).check_file_size
    head, entry = await require_file(workspace, path)
    is_large = entry.blob.size > THREAD_THRESHOLD_BYTES
    kind, content = file_kinds.file_kind(entry.type), b""
    large_edit = LargeEdit(ports.blobs, entry.blob, old, new)
    if is_large:
        count = await large_edit.count_matches()
        check_match_count(count, path.text, replace_all=every)
        check_size(entry.blob.size + count * (len(new) - len(old)))
        detector = await large_edit.detect_text()
        type = file_kinds.detected_entry_type(kind, path, detector, entry.type)
    else:
        before = (await ports.blobs.get([entry.blob]))[entry.blob.digest]
        parts, count = replace_text(
            before, old, new, replace_all=every, name=path.text, check_size=check_size
        )
        content = b"".join(parts)
        type = file_kinds.entry_type(kind, path, content, entry.type)
    condition = WriteCondition(frozenset([f'"v{head.version}"']))
    options = workspace.write_options("edit", path, type, condition)
    writer = FileWriter(ports, (workspace.scope,), path, workspace.actor, options)
    try:
        if is_large:
            file, redacted = await large_edit.write(writer)
            return EditedFile(file, redacted, count)
        result = await writer.put(content)
        return EditedFile(result.file, result.redacted.replaced, count)
    except WorkspaceConflict:
        raise Busy.with_conflicts(str(path)) from None


async def glob_files(workspace: WorkspaceFiles, pattern: str, root: str) -> list[str]:
    """List files below a directory that match a glob, relative to it, newest first."""
    pattern_matcher = compile_glob(pattern)
    relative_names = [(head, relative_to(root, head.path)) for head in await list_heads(workspace)]
    matches = [
        (-head.at, name)
        for head, name in relative_names
        if name and pattern_matcher.fullmatch(name.encode())
    ]
    return [name for _, name in sorted(matches)]


async def list_directory(workspace: WorkspaceFiles, directory: str) -> Sequence[DirectoryEntry]:
    """List what is directly in a directory, in order of path.

    Raises NotFound, and ValidationError for a file.
    """
    prefix = f"{directory}/" if directory else ""
    if directory:
        workspace.require_visible(Path(directory))
    view = await files.load_view(workspace.ports, (workspace.scope,), prefix)
    listed = _list_visible(workspace, prefix, view)
    if directory and not listed:
        [tree] = await workspace.ports.trees.read((workspace.scope,), (Path(directory),))
        head = tree.heads.get(Path(directory))
        if head is not None and head.entry is not None:
            raise ValidationError(f"{directory} is a file")
        if head is None or head.directory is None:
            raise NotFound(f"directory not found: {directory}")
    return listed


def _list_visible(
    workspace: WorkspaceFiles, prefix: str, view: WorkspaceView
) -> Sequence[DirectoryEntry]:
    """List what the session may see; what it may not see adds nothing to sizes and times."""
    by_path = view.workspace.files.items()
    visible = [file for path, file in by_path if workspace.can_see(path)]
    directories = {
        path: head.at
        for tree in view.layers
        for path, head in tree.directories.items()
        if workspace.can_see(path)
    }
    return list_entries(prefix, visible, directories)
