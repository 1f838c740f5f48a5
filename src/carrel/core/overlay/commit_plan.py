"""Plans a commit of many file changes, evaluated together against one state of the stack.

Every change is planned as if it were alone, by the rules of single writes; a commit is planned only
if all of them are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import Conflict, NotFound, Refusal
from carrel.core.identifiers import Path, Scope
from carrel.core.overlay import agent_writes, planned_writes
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.agent_writes import NewContent
from carrel.core.overlay.compose import File, Layers, resolve
from carrel.core.overlay.file_changes import ChangeKind, FailedChange, FileChange
from carrel.core.overlay.planned_writes import PlannedWrite, new_path_checks
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.core.store.commit import Expect, ExpectPathFree, Write, expect_unchanged
from carrel.core.store.entry import MARKDOWN, FileAttributes, TransferKind, VersionSource


class CommitPlan(Struct, frozen=True):
    """Writes of all changes, or the changes that cannot be applied."""

    expects: tuple[Expect, ...] = ()
    writes: tuple[Write, ...] = ()
    path_checks: tuple[ExpectPathFree, ...] = ()
    failures: tuple[FailedChange, ...] = ()


class CommitContext(Struct, frozen=True):
    """State that the changes of a commit are planned against."""

    layers: Layers
    """With every path that a change names, and the parents of directories that are made."""
    resolver: AgentFileResolver | None = None
    """Set for the workspace of an agent."""

    @property
    def scope(self) -> Scope:
        return self.layers[0].scope

    def resolve(self, path: Path) -> File | None:
        if self.resolver is not None:
            return self.resolver.resolve(path, self.layers)
        return resolve(path, self.layers)


def plan_commit(context: CommitContext, changes: Sequence[FileChange]) -> CommitPlan:
    """Plan all changes. Without failures, applying the plan equals applying each alone."""
    planned: list[PlannedWrite] = []
    failures: list[FailedChange] = []
    for change in changes:
        try:
            planned += _plan_change(context, change)
        except Refusal as refusal:
            failures.append(FailedChange(change, refusal))
    if not failures:
        failures += _find_nested_files(context, changes, planned)
    if failures:
        return CommitPlan(failures=tuple(failures))
    return CommitPlan(
        tuple(dict.fromkeys(expect for write in planned for expect in write.expects)),
        tuple(write.write for write in planned),
        tuple(check for write in planned for check in write.path_checks),
    )


def _plan_change(context: CommitContext, change: FileChange) -> Iterator[PlannedWrite]:
    match change.kind:
        case ChangeKind.PUT:
            if planned := _plan_put(context, change, change.type or MARKDOWN):
                yield planned
        case ChangeKind.DELETE:
            yield _plan_delete(context, change.path, change.condition)
        case ChangeKind.MOVE | ChangeKind.COPY:
            yield from _plan_transfer(context, change)
        case ChangeKind.MAKE_DIRECTORY:
            yield from _plan_make_directory(context, change)
        case ChangeKind.REMOVE_DIRECTORY:
            yield _plan_remove_directory(context, change.path)


def _plan_put(context: CommitContext, change: FileChange, type: str) -> PlannedWrite | None:
    """Plan a put; None if the agent inherits this content already."""
    assert change.blob is not None
    layers, path, condition = context.layers, change.path, change.condition
    if context.resolver is not None:
        content = NewContent(change.blob, type, change.accept_template_update)
        return agent_writes.plan_agent_put(layers, path, content, context.resolver, condition)
    return planned_writes.plan_put(layers, path, change.blob, condition, type)


def _plan_delete(context: CommitContext, path: Path, condition: WriteCondition) -> PlannedWrite:
    if context.resolver is None:
        return planned_writes.plan_delete(context.layers, path, condition)
    return agent_writes.plan_agent_delete(context.layers, path, context.resolver, condition)


def _plan_transfer(context: CommitContext, change: FileChange) -> Iterator[PlannedWrite]:
    """Plan the put of the target and, of a move, the deletion of the source."""
    assert change.source is not None
    file = context.resolve(change.source)
    change.source_condition.check(change.source, file)
    if file is None:
        raise NotFound(f"no such file: {change.source}")
    deletion = _plan_removal(context, change.source) if change.kind is ChangeKind.MOVE else None
    unchanged = tuple(expect_unchanged(tree, change.source) for tree in context.layers)
    planned = _plan_put(context, change, file.entry.type)
    if planned is not None and planned.write.entry is not None:
        moves_file = deletion is not None and deletion.write.is_deletion
        entry = replace(planned.write.entry, attributes=_moved_attributes(file, change.kind))
        write = replace(
            planned.write,
            entry=entry,
            file_id=file.head.file_id(context.scope) if moves_file else None,
            source=VersionSource(TransferKind(change.kind), file.version, change.source.text),
        )
        planned = replace(planned, write=write)
    if planned is not None:
        yield replace(planned, expects=(*planned.expects, *unchanged))
    if deletion is not None:
        yield replace(deletion, expects=(*deletion.expects, *unchanged))


def _plan_removal(context: CommitContext, source: Path) -> PlannedWrite:
    """Plan the deletion of a moved file. Raises NotFound for one that only layers below have."""
    try:
        return _plan_delete(context, source, UNCONDITIONAL)
    except NotFound:
        raise NotFound(f"{source} is inherited: it can be copied, not moved") from None


def _moved_attributes(file: File, kind: ChangeKind) -> FileAttributes | None:
    """Mode of the file, and of a move its time."""
    attributes = file.entry.attributes
    if attributes is None or kind is ChangeKind.MOVE:
        return attributes
    return None if attributes.mode is None else FileAttributes(attributes.mode)


def _plan_make_directory(context: CommitContext, change: FileChange) -> Iterator[PlannedWrite]:
    """Plan a directory, unless there is one of its own. Raises Conflict if a file is there."""
    path = change.path
    scopes = tuple(tree.scope for tree in context.layers)
    checked = (*path.parents, path) if new_path_checks(path, scopes) else (path,)
    for tree in context.layers:
        for other in checked:
            if tree.entry(other):
                raise Conflict(f"{path} cannot be a directory: {other} is a file", path=other.text)
    head = context.layers[0].heads.get(path)
    if head is not None and head.directory is not None:
        return
    expects = tuple(Expect(scope, other, live=False) for scope in scopes for other in checked)
    write = Write(context.scope, path, None, directory=change.attributes or FileAttributes())
    yield PlannedWrite(expects, write)


def _plan_remove_directory(context: CommitContext, path: Path) -> PlannedWrite:
    head = context.layers[0].heads.get(path)
    if head is None or head.directory is None:
        raise NotFound(f"no such directory: {path}")
    expects = (Expect(context.scope, path, head.version),)
    return PlannedWrite(expects, Write(context.scope, path, None))


def _find_nested_files(
    context: CommitContext, changes: Sequence[FileChange], planned: Sequence[PlannedWrite]
) -> Iterator[FailedChange]:
    """Changes whose path lies below a file of the same commit."""
    scopes = tuple(tree.scope for tree in context.layers)
    files = {write.write.path for write in planned if write.write.entry is not None}
    live = files | {write.write.path for write in planned if write.write.directory is not None}
    by_path = {path: change for change in changes for path in change.written_paths}
    for path in sorted(live):
        if not new_path_checks(path, scopes):
            return
        for parent in path.parents:
            if parent in files:
                problem = f"{path} cannot be a file: {parent} is a file"
                yield FailedChange(by_path[path], Conflict(problem, path=parent.text))
