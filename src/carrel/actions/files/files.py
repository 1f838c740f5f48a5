"""Reads and writes the files of a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.blob_contents import load_contents
from carrel.actions.files.file_writer import (
    DEFAULT_OPTIONS,
    FileWriter,
    WriteOptions,
    WriteResult,
)
from carrel.actions.overlay.agent_layers import (
    AgentLayers,
    load_agent_layers,
    load_classes,
    load_resolver,
)
from carrel.actions.overlay.stack_versions import load_versioned_path
from carrel.core.access import Actor, Permission
from carrel.core.agents.private_access import is_open_file, require_open_file
from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path, ScopeKind, Stack
from carrel.core.overlay.agent_resolution import AgentFileResolver, file_from_version
from carrel.core.overlay.compose import File, Layers, Workspace, compose, resolve, revisions_etag
from carrel.core.overlay.directories import DirectoryEntry, list_entries
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues, render_bytes
from carrel.core.store.entry import Head
from carrel.ports import CorruptContent, Ports

__all__ = ["DEFAULT_OPTIONS", "WriteOptions", "WriteResult"]

_INHERITED_ONLY: Final = "inherited only"
"""Part of the ETag of a listing with the inherited live files only."""


class FileContents(Struct, frozen=True):
    """Contents of many files, and errors of those that could not be read."""

    contents: Mapping[Path, bytes]
    failed: Mapping[Path, str]


async def get_file(ports: Ports, stack: Stack, path: Path, *, inherited_only: bool = False) -> File:
    """Resolve a path in a workspace, without its content. Raises NotFound.

    With `inherited_only`, raises Forbidden unless it is an inherited live file of the agent.
    """
    layers = await ports.trees.read(stack, (path,))
    if stack[0].kind is ScopeKind.AGENT:
        file = await _resolve_for_agent(ports, stack, path, layers)
    else:
        file = resolve(path, layers)
    if inherited_only:
        return require_open_file(path, file)
    if file is None:
        raise NotFound(f"no such file: {path}")
    if stack[0].kind is ScopeKind.WORKSPACE:
        return file
    classes = await load_classes(ports, stack)
    return file if classes is None else replace(file, file_class=classes.class_of(path))


async def _resolve_for_agent(ports: Ports, stack: Stack, path: Path, layers: Layers) -> File | None:
    """Resolve a path with the agent's file resolver."""
    resolver = (await load_agent_layers(ports, stack[0].tenant, stack[0].name)).resolver
    file = resolver.resolve(path, layers)
    if file is None:  # It may have become pinned since the layers were read.
        file = resolver.resolve(path, await ports.trees.read(stack, (path,)))
    return file


async def read_content(ports: Ports, file: File, *, raw: bool = False) -> bytes:
    """Read a file's content as served, or as stored if `raw`."""
    try:
        stored = (await ports.blobs.get([file.blob]))[file.blob.digest]
    except CorruptContent as problem:
        raise CorruptContent(f"{file.path}: {problem}") from problem
    return stored if raw else render_content(file, stored)


def render_content(file: File, content: bytes) -> bytes:
    """Replace the placeholders of a file that has any."""
    return content if file.variables is None else render_bytes(content, file.variables)


async def read_contents(ports: Ports, workspace: Workspace, *, raw: bool = False) -> FileContents:
    """Read the contents of all files in one batch; collects errors per path."""
    files = workspace.files
    blobs = await load_contents(ports, [file.blob for file in files.values()])
    contents: dict[Path, bytes] = {}
    failed: dict[Path, str] = {}
    for path, file in files.items():
        content = blobs[file.blob.digest]
        if isinstance(content, CorruptContent):
            failed[path] = str(content)
        else:
            contents[path] = content if raw else render_content(file, content)
    return FileContents(contents, failed)


async def read_version(ports: Ports, stack: Stack, path: Path, number: int) -> tuple[File, bytes]:
    """Read one version as the stack numbers it, with its stored content.

    Raises NotFound, also for a deletion.
    """
    file = await find_version(ports, stack, path, number)
    return file, await read_content(ports, file, raw=True)


async def find_version(
    ports: Ports, stack: Stack, path: Path, number: int, *, inherited_only: bool = False
) -> File:
    """Find one version as the stack numbers it. Raises NotFound and Forbidden.

    A deletion is not found. With `inherited_only`, only the current version of an inherited live
    file is open.
    """
    if inherited_only:
        file = await get_file(ports, stack, path, inherited_only=True)
        if file.version != number:
            raise Forbidden(f"only the current version of {path} is open to this credential")
        return file
    versioned = await load_versioned_path(ports, stack, path)
    current = versioned.file
    if current is not None and current.version == number:
        return current
    version = await versioned.find(number)
    if version.row.head.entry is None:
        raise NotFound(f"no such version of {path}: {number}")
    if version.row.redacted:
        raise NotFound(f"version {number} of {path} was redacted")
    return versioned.to_file(version)


async def find_written(ports: Ports, stack: Stack, path: Path, number: int) -> File:
    """Find what a write left, given the version of the nearest layer that it wrote.

    If the write dropped an override, that is the inherited file. Raises NotFound.
    """
    [version] = await ports.trees.versions([(stack[0], path, number)])
    if version is None or version.head.entry is None:
        return await get_file(ports, stack, path)
    return file_from_version(stack, await load_resolver(ports, stack), version.head, stack[0])


async def load_etag(ports: Ports, stack: Stack, *extra: str, inherited_only: bool = False) -> str:
    """Return a listing's ETag; it changes with any layer, file class or agent name."""
    scope = stack[0]
    extra = (*extra, _INHERITED_ONLY) if inherited_only else extra
    if scope.kind is ScopeKind.AGENT:
        extra = (*extra, (await load_agent_layers(ports, scope.tenant, scope.name)).key)
    elif classes := await load_classes(ports, stack):
        extra = (*extra, classes.key)
    return revisions_etag(stack, await ports.trees.revisions(stack), *extra)


class InheritedFiles(Struct, frozen=True):
    """Files of an agent without overrides, shared by all agents over the same layers."""

    files: Mapping[Path, File]
    """Before placeholders are replaced."""
    variables: PlaceholderValues


class WorkspaceView(Struct, frozen=True):
    """Workspace at one moment: its layers and the context to resolve them."""

    stack: Stack
    layers: Layers
    agent_layers: AgentLayers | None
    """Set for an agent's workspace only."""
    classes: FileClassRules | None
    """Set for templates and defaults only."""
    inherited_only: bool = False
    """Whether it shows only the inherited live files of an agent."""

    def etag(self, *extra: str) -> str:
        """Return the ETag of a listing of this view, equal to `load_etag`."""
        revisions = tuple([tree.revision for tree in self.layers])
        extra = (*extra, _INHERITED_ONLY) if self.inherited_only else extra
        return revisions_etag(self.stack, revisions, *extra, *self._key)

    @property
    def _key(self) -> tuple[str, ...]:
        if self.agent_layers is not None:
            return (self.agent_layers.key,)
        return () if self.classes is None else (self.classes.key,)

    @property
    def workspace(self) -> Workspace:
        if self.agent_layers is None:
            return compose(self.layers, self.classes)
        workspace = self.agent_layers.resolver.compose(self.layers)
        return open_files(workspace) if self.inherited_only else workspace

    def list_directory(self, prefix: str) -> Sequence[DirectoryEntry]:
        """List what is directly in the directory that a prefix ends in."""
        trees = () if self.inherited_only else self.layers
        directories = {path: head.at for tree in trees for path, head in tree.directories.items()}
        return list_entries(prefix, self.workspace.files.values(), directories)

    @property
    def inherited_files(self) -> InheritedFiles | None:
        """None if the workspace is not an agent's, has its own files or shows only some."""
        if self.agent_layers is None or self.inherited_only:
            return None
        resolver = self.agent_layers.resolver
        files = resolver.inherited_files(self.layers)
        return None if files is None else InheritedFiles(files, resolver.variables)

    def has_same_context(self, other: WorkspaceView) -> bool:
        """Return whether both views resolve and render files in the same way."""
        return self._key == other._key and self._agent_revision == other._agent_revision

    @property
    def _agent_revision(self) -> int:
        return 0 if self.agent_layers is None else self.agent_layers.agent.revision


def open_files(workspace: Workspace) -> Workspace:
    """Return the files of an agent's workspace that are open to every member."""
    return Workspace({path: file for path, file in workspace.files.items() if is_open_file(file)})


async def load_view(
    ports: Ports, stack: Stack, prefix: str = "", *, inherited_only: bool = False
) -> WorkspaceView:
    """Load a consistent view; reads again if names or rules changed meanwhile."""
    previous = await _load_view_once(ports, stack, ())
    while True:
        current = await _load_view_once(ports, stack, await ports.trees.read(stack, prefix=prefix))
        if current.has_same_context(previous):
            return replace(current, inherited_only=inherited_only)
        previous = current


async def _load_view_once(ports: Ports, stack: Stack, layers: Layers) -> WorkspaceView:
    scope = stack[0]
    is_agent = scope.kind is ScopeKind.AGENT
    agent_layers = await load_agent_layers(ports, scope.tenant, scope.name) if is_agent else None
    return WorkspaceView(stack, layers, agent_layers, await load_classes(ports, stack))


async def list_files(
    ports: Ports, stack: Stack, prefix: str = "", resolver: AgentFileResolver | None = None
) -> Workspace:
    """List the files of a workspace by path, optionally with another file resolver."""
    if resolver is not None:
        return resolver.compose(await ports.trees.read(stack, prefix=prefix))
    return (await load_view(ports, stack, prefix)).workspace


async def put(
    ports: Ports,
    stack: Stack,
    path: Path,
    content: bytes,
    actor: Actor,
    options: WriteOptions = DEFAULT_OPTIONS,
) -> WriteResult:
    """Write one file to the nearest layer.

    Raises WorkspaceConflict, WorkspaceTooLarge, ValidationError, Busy, or Forbidden if the file's
    class or the caller's key does not allow it.
    """
    return await FileWriter(ports, stack, path, actor, options).put(content)


async def delete(
    ports: Ports, stack: Stack, path: Path, actor: Actor, options: WriteOptions = DEFAULT_OPTIONS
) -> Head:
    """Delete a file of the nearest layer.

    Raises NotFound, WorkspaceConflict, Forbidden or Busy.
    """
    return await FileWriter(ports, stack, path, actor, options).delete()


async def restore(
    ports: Ports,
    stack: Stack,
    path: Path,
    number: int,
    actor: Actor,
    options: WriteOptions = DEFAULT_OPTIONS,
) -> WriteResult:
    """Write the content of an earlier version as a new version.

    Needs permission to read, too. Raises Forbidden and what `read_version` and `put` raise.
    """
    actor.require(Permission.WORKSPACE_READ)
    file, content = await read_version(ports, stack, path, number)
    reason = options.reason or f"restore {path} to version {number}"
    restore_options = replace(options, type=file.entry.type, reason=reason)
    return await put(ports, stack, path, content, actor, restore_options)
