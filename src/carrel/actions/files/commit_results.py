"""Results of a commit of many files: what every changed path became."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.files.change_contents import ChangeContents
from carrel.actions.overlay.agent_layers import load_classes, load_resolver
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.commit_plan import CommitContext
from carrel.core.overlay.compose import File, Layers, resolve
from carrel.core.overlay.file_changes import ChangeKind, FileChange
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.redaction.redactor import RedactionResult
from carrel.core.store.entry import Head, TransferKind, Version
from carrel.ports import Ports

_END_OF_REVISION = ("\U0010ffff" * 257, 2**62)
"""Sorts after every path and version of a revision."""
_LOG_PAGE = 1000


class ChangeResult(Struct, frozen=True):
    """What one changed path became."""

    index: int
    """Position of the requested change."""
    kind: ChangeKind
    path: Path
    source: Path | None
    """Path that was moved or copied here."""
    version: int
    """Of the write, as the stack numbers it; 0 if nothing was written."""
    file: File | None
    """The file that is served now; None after a deletion, and for a directory."""
    redaction: RedactionResult | None = None


class CommitResult(Struct, frozen=True):
    revision: int
    """Revision of the nearest layer."""
    changes: tuple[ChangeResult, ...]
    """In the order of the request; those of a directory in order of path."""


def results_of_heads(
    context: CommitContext,
    classes: FileClassRules | None,
    contents: ChangeContents,
    heads: Mapping[Path, Head],
) -> CommitResult:
    """Results of a commit that wrote these heads; `classes` are those of a shared layer."""
    nearest, *lower = context.layers
    after = (replace(nearest, heads={**nearest.heads, **heads}), *lower)
    view = _View(after, context.resolver, classes)
    results = [
        ChangeResult(
            change.index,
            change.kind,
            change.path,
            change.source,
            heads[change.path].stack_version if change.path in heads else 0,
            view.resolve(change),
            contents.redacted.get(change.index),
        )
        for change in contents.changes
    ]
    revision = max((head.revision for head in heads.values()), default=nearest.revision)
    return CommitResult(revision, tuple(sorted(results, key=_order)))


def _order(result: ChangeResult) -> tuple[int, Path]:
    return (result.index, result.path)


class _View(Struct, frozen=True):
    """State after a commit."""

    layers: Layers
    resolver: AgentFileResolver | None
    classes: FileClassRules | None

    def resolve(self, change: FileChange) -> File | None:
        """File that a change left; None for a directory."""
        path = change.path
        if self.resolver is not None:
            return self.resolver.resolve(path, self.layers)
        file = resolve(path, self.layers)
        if file is None or self.classes is None:
            return file
        return replace(file, file_class=self.classes.class_of(path))


async def load_results(
    ports: Ports, stack: Stack, requested: Sequence[FileChange], revision: int
) -> CommitResult:
    """Results of an earlier commit, from the history that it wrote."""
    rows = await _load_versions(ports, stack, revision)
    sources = [row.source for row in rows if row.source is not None]
    moved = {source.path for source in sources if source.kind is TransferKind.MOVE}
    heads = {row.head.path: row.head for row in rows}
    changes = [_change_of(row, requested) for row in rows if row.head.path.text not in moved]
    unwritten = [
        replace(change, index=index)
        for index, change in enumerate(requested)
        if change.kind is ChangeKind.PUT and change.path not in heads
    ]
    changes += unwritten
    paths = [change.path for change in changes]
    layers = await ports.trees.read(stack, paths)
    context = CommitContext(layers, await load_resolver(ports, stack))
    classes = await load_classes(ports, stack)
    contents = ChangeContents(changes, (), {}, None)
    result = results_of_heads(context, classes, contents, heads)
    return CommitResult(revision, result.changes)


async def _load_versions(ports: Ports, stack: Stack, revision: int) -> list[Version]:
    rows: list[Version] = []
    after = (revision - 1, *_END_OF_REVISION)
    while page := await ports.trees.log(stack[0], after=after, limit=_LOG_PAGE):
        rows += [row for row in page if row.head.revision == revision]
        last = page[-1].head
        if last.revision > revision or len(page) < _LOG_PAGE:
            break
        after = (last.revision, last.path.text, last.version)
    return rows


def _change_of(row: Version, requested: Sequence[FileChange]) -> FileChange:
    """The change that wrote a version."""
    path, source = row.head.path, row.source
    index = next((n for n, change in enumerate(requested) if _is_within(path, change)), 0)
    kind = requested[index].kind
    if source is not None:
        return FileChange(ChangeKind(source.kind.value), path, Path(source.path), index=index)
    if row.head.directory is not None:
        kind = ChangeKind.MAKE_DIRECTORY
    elif row.head.entry is None and kind is not ChangeKind.PUT:
        kind = ChangeKind.DELETE
    return FileChange(kind, path, index=index)


def _is_within(path: Path, change: FileChange) -> bool:
    return any(path == other or other in path.parents for other in _changed_paths(change))


def _changed_paths(change: FileChange) -> Iterator[Path]:
    yield change.path
    if change.kind is ChangeKind.MOVE and change.source is not None:
        yield change.source
