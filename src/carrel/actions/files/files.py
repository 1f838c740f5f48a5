"""Reading and writing the files of a workspace."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.blob_contents import contents_of
from carrel.actions.files.file_writer import (
    PLAIN,
    FileWriter,
    WriteOptions,
    WriteResult,
    file_from_head,
)
from carrel.actions.overlay.agent_layers import AgentLayers, classes_of, load_agent_layers
from carrel.core.access import Actor
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, ScopeKind, Stack
from carrel.core.overlay.agent_files import RenderContext
from carrel.core.overlay.compose import File, Layers, Workspace, compose, resolve, revisions_etag
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.overlay.layers import own_scopes
from carrel.core.overlay.placeholders import PlaceholderValues, render_bytes
from carrel.core.store.tree import Head
from carrel.ports import CorruptContent, Ports

__all__ = ["PLAIN", "WriteOptions", "WriteResult"]


class FileContents(Struct, frozen=True):
    """The bytes of many files, and why those of some could not be had."""

    found: Mapping[Path, bytes]
    failed: Mapping[Path, str]


async def find_file(ports: Ports, stack: Stack, path: Path) -> File:
    """What the workspace shows at a path, without its content. Raises Missing."""
    layers = await ports.trees.read(stack, (path,))
    if stack[0].kind is ScopeKind.AGENT:
        file = await _shown(ports, stack, path, layers)
    else:
        file = resolve(path, layers)
    if file is None:
        raise NotFound(f"there is no {path}")
    if stack[0].kind is ScopeKind.WORKSPACE:
        return file
    classes = await classes_of(ports, stack)
    return file if classes is None else replace(file, file_class=classes.class_of(path))


async def _shown(ports: Ports, stack: Stack, path: Path, layers: Layers) -> File | None:
    """The same with an agent's eyes."""
    render_context = (await load_agent_layers(ports, stack[0].tenant, stack[0].name)).eye
    file = render_context.resolve(path, layers)
    if file is None:  # It may have become pinned in between, and so be there.
        file = render_context.resolve(path, await ports.trees.read(stack, (path,)))
    return file


async def read_content(ports: Ports, file: File, *, raw: bool = False) -> bytes:
    """Its bytes as they are served, or as they are stored."""
    try:
        found = (await ports.blobs.get([file.blob]))[file.blob.digest]
    except CorruptContent as problem:
        raise CorruptContent(f"{file.path}: {problem}") from problem
    return found if raw else render_content(file, found)


def render_content(file: File, content: bytes) -> bytes:
    """The bytes of a file with its placeholders filled in, where that is done."""
    return content if file.variables is None else render_bytes(content, file.variables)


async def read_contents(ports: Ports, workspace: Workspace, *, raw: bool = False) -> FileContents:
    """The bytes of every file, in one batch; what cannot be had fails by name and alone."""
    files = workspace.files
    blobs = await contents_of(ports, [file.blob for file in files.values()])
    found: dict[Path, bytes] = {}
    failed: dict[Path, str] = {}
    for path, file in files.items():
        content = blobs[file.blob.digest]
        if isinstance(content, CorruptContent):
            failed[path] = str(content)
        else:
            found[path] = content if raw else render_content(file, content)
    return FileContents(found, failed)


async def read_version(ports: Ports, stack: Stack, path: Path, number: int) -> tuple[File, bytes]:
    """One version of what the nearest layer said. Raises Missing, for a tombstone too."""
    speakers = own_scopes(stack)
    own, *shared = await ports.trees.versions([(scope, path, number) for scope in speakers])
    found, scope = own, speakers[0]
    if own is None and shared and not await ports.trees.history(stack[0], path, limit=1):
        found, scope = shared[0], speakers[1]
    if found is None or found.head.entry is None:
        raise NotFound(f"there is no version {number} of {path}")
    blob = found.head.entry.blob
    return file_from_head(stack, found.head, scope), (await ports.blobs.get([blob]))[blob.digest]


async def etag(ports: Ports, stack: Stack, *more: str) -> str:
    """What a listing is known by: it changes when anything in any layer does, or any name in it."""
    own = stack[0]
    if own.kind is ScopeKind.AGENT:
        more = (*more, (await load_agent_layers(ports, own.tenant, own.name)).key)
    elif classes := await classes_of(ports, stack):
        more = (*more, classes.key)
    return revisions_etag(stack, await ports.trees.revisions(stack), *more)


class InheritedFiles(Struct, frozen=True):
    """What an agent shares with all others over the same layers that have nothing of their own."""

    files: Mapping[Path, File]
    """As they are before anything is filled in."""
    variables: PlaceholderValues


class WorkspaceView(Struct, frozen=True):
    """A workspace at one moment: its layers, and how they were seen."""

    stack: Stack
    layers: Layers
    lineage: AgentLayers | None
    """Of an agent's."""
    classes: FileClassRules | None
    """Of a template's, and of the defaults."""

    def etag(self, *more: str) -> str:
        """What a listing of it is known by, which is the same that ``etag`` tells."""
        revisions = tuple([tree.revision for tree in self.layers])
        return revisions_etag(self.stack, revisions, *more, *self._key)

    @property
    def _key(self) -> tuple[str, ...]:
        if self.lineage is not None:
            return (self.lineage.key,)
        return () if self.classes is None else (self.classes.key,)

    @property
    def workspace(self) -> Workspace:
        if self.lineage is None:
            return compose(self.layers, self.classes)
        return self.lineage.eye.compose(self.layers)

    @property
    def alike(self) -> InheritedFiles | None:
        """None for a workspace that is not an agent's, or has something of its own."""
        if self.lineage is None:
            return None
        render_context = self.lineage.eye
        files = render_context.inherited_files(self.layers)
        return None if files is None else InheritedFiles(files, render_context.variables)

    def is_seen_as(self, other: WorkspaceView) -> bool:
        """Whether nothing has changed that decides how the files are seen."""
        return self._key == other._key and self._agent == other._agent

    @property
    def _agent(self) -> int:
        return 0 if self.lineage is None else self.lineage.agent.revision


async def load_view(ports: Ports, stack: Stack, prefix: str = "") -> WorkspaceView:
    """Names, rules and files of one moment: looked at again where one changed before the other."""
    before = await _view(ports, stack, ())
    while True:
        now = await _view(ports, stack, await ports.trees.read(stack, prefix=prefix))
        if now.is_seen_as(before):
            return now
        before = now


async def _view(ports: Ports, stack: Stack, layers: Layers) -> WorkspaceView:
    own = stack[0]
    is_agent = own.kind is ScopeKind.AGENT
    agent_layers = await load_agent_layers(ports, own.tenant, own.name) if is_agent else None
    return WorkspaceView(stack, layers, agent_layers, await classes_of(ports, stack))


async def list_files(
    ports: Ports, stack: Stack, prefix: str = "", render_context: RenderContext | None = None
) -> Workspace:
    """Everything that a workspace shows, in order of path; with other eyes where they are given."""
    if render_context is not None:
        return render_context.compose(await ports.trees.read(stack, prefix=prefix))
    return (await load_view(ports, stack, prefix)).workspace


async def put(
    ports: Ports,
    stack: Stack,
    path: Path,
    content: bytes,
    actor: Actor,
    intent: WriteOptions = PLAIN,
) -> WriteResult:
    """Write one file at the nearest layer.

    Raises Stale, TooLarge, Malformed, Busy, or Forbidden where its class or the caller's key says
    no.
    """
    return await FileWriter(ports, stack, path, actor, intent).put(content)


async def delete(
    ports: Ports, stack: Stack, path: Path, actor: Actor, intent: WriteOptions = PLAIN
) -> Head:
    """Remove one file from the nearest layer. Raises Missing, Stale, Forbidden or Busy."""
    return await FileWriter(ports, stack, path, actor, intent).delete()


async def restore(
    ports: Ports, stack: Stack, path: Path, number: int, actor: Actor, intent: WriteOptions = PLAIN
) -> WriteResult:
    """Make an earlier version the newest again: a new version with the old content."""
    file, content = await read_version(ports, stack, path, number)
    reason = intent.reason or f"restore {path} to version {number}"
    again = replace(intent, type=file.entry.type, reason=reason)
    return await put(ports, stack, path, content, actor, again)
