"""Plan of a commit: it equals its parts applied alone, or nothing; a move keeps the file's id."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.strategies_trees import BLOBS, PATHS, SCOPES, blobs, paths, stacks

from carrel.core.errors import Conflict, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.commit_plan import CommitContext, CommitPlan, plan_commit
from carrel.core.overlay.file_changes import (
    TRANSFERS,
    ChangeKind,
    DirectoryContents,
    FailedChange,
    FileChange,
    check_independent,
    check_requested,
    commit_refusal,
    expand_directory,
)
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.core.store.commit import Write, stored_file_id
from carrel.core.store.entry import FileAttributes, Head, new_file_id
from carrel.core.store.tree import Tree

Layers = tuple[Tree, ...]
RESOLVERS = [None, AgentFileResolver()]

conditions = st.sampled_from(
    [
        *[UNCONDITIONAL] * 4,
        WriteCondition(absent=True),
        WriteCondition(frozenset({"*"})),
        WriteCondition(frozenset({'"v1"'})),
    ]
)
kinds = st.sampled_from([ChangeKind.PUT, ChangeKind.DELETE, ChangeKind.MOVE, ChangeKind.COPY])


@st.composite
def file_changes(draw: st.DrawFn) -> FileChange:
    kind, path, content = draw(kinds), draw(paths), draw(blobs)
    if kind in TRANSFERS:
        return FileChange(kind, path, draw(paths), source_condition=draw(conditions))
    blob = content if kind is ChangeKind.PUT else None
    return FileChange(kind, path, condition=draw(conditions), blob=blob)


def with_blobs(context: CommitContext, changes: Sequence[FileChange]) -> list[FileChange]:
    """The changes with the contents of the files that they move or copy."""
    result = []
    for index, change in enumerate(changes):
        file = context.resolve(change.source) if change.source else None
        blob = change.blob if file is None else file.blob
        result.append(replace(change, index=index, blob=blob))
    return result


def is_independent(changes: Sequence[FileChange]) -> bool:
    try:
        check_requested(changes)
    except ValidationError:
        return False
    return True


def apply_write(tree: Tree, write: Write) -> Tree:
    """The tree after a write, as a store applies it."""
    before = tree.heads.get(write.path)
    if write.is_deletion and (before is None or not before.is_live):
        return tree
    version = tree.version(write.path) + 1
    offset = max(write.version_offset, before.version_offset if before else 0)
    file_id = stored_file_id(write, before)
    head = Head(write.path, version, 0, 0, write.entry, offset, write.directory, file_id)
    return replace(tree, heads={**tree.heads, write.path: head})


def apply_plan(layers: Layers, plan: CommitPlan) -> Layers:
    heads = {tree.scope: tree.heads for tree in layers}
    assert all(e.holds(heads[e.scope].get(e.path)) for e in plan.expects)
    tree = layers[0]
    for write in plan.writes:
        tree = apply_write(tree, write)
    return (tree, *layers[1:])


@given(stacks(), st.lists(file_changes(), min_size=1, max_size=5), st.sampled_from(RESOLVERS))
def test_a_commit_equals_its_parts_applied_alone_or_nothing(
    layers: Layers, changes: list[FileChange], resolver: AgentFileResolver | None
) -> None:
    assume(is_independent(changes))
    context = CommitContext(layers, resolver)
    parts = with_blobs(context, changes)

    plan = plan_commit(context, parts)

    if plan.failures:
        assert plan == CommitPlan(failures=plan.failures)
        alone = {part.index: plan_commit(context, [part]).failures for part in parts}
        failed = {failure.change.index for failure in plan.failures}
        nested = all(isinstance(failure.refusal, Conflict) for failure in plan.failures)
        assert nested or failed == {index for index, failures in alone.items() if failures}
        return
    after = layers
    for part in parts:
        single = plan_commit(CommitContext(after, resolver), [part])
        assert not single.failures
        after = apply_plan(after, single)
    assert apply_plan(layers, plan) == after


@given(st.lists(st.tuples(st.booleans(), paths, paths), max_size=12), st.sampled_from(RESOLVERS))
def test_a_moved_file_keeps_its_id_and_names_the_version_it_was(
    steps: list[tuple[bool, Path, Path]], resolver: AgentFileResolver | None
) -> None:
    """A model maps each path to the id that its file began with."""
    layers: Layers = (Tree(SCOPES[0], 0, {}),)
    model: dict[Path, str] = {}
    for is_move, path, source in steps:
        context, tree = CommitContext(layers, resolver), layers[0]
        if not is_move:
            change = FileChange(ChangeKind.PUT, path, blob=BLOBS[1])
            model.setdefault(path, new_file_id(SCOPES[0], path, tree.version(path) + 1))
        elif source in model and path != source:
            change = FileChange(ChangeKind.MOVE, path, source, blob=BLOBS[1])
            model[path] = model.pop(source)
        else:
            continue
        plan = plan_commit(context, [change])
        assert not plan.failures
        if is_move:
            origin = plan.writes[0].source
            assert origin is not None
            assert (origin.path, origin.version) == (source.text, tree.version(source))
        layers = apply_plan(layers, plan)
        heads = {path: head for path, head in layers[0].heads.items() if head.entry}
        assert {path: head.file_id(SCOPES[0]) for path, head in heads.items()} == model


def test_changes_whose_order_would_matter_are_refused() -> None:
    a, b, c = PATHS[0], PATHS[2], PATHS[3]
    put, delete = FileChange(ChangeKind.PUT, a), FileChange(ChangeKind.DELETE, a)
    for changes in (
        [put, put],
        [put, delete],
        [FileChange(ChangeKind.MOVE, b, a), put],
        [FileChange(ChangeKind.MOVE, b, a), FileChange(ChangeKind.MOVE, b, c)],
        [FileChange(ChangeKind.MOVE, b, a), FileChange(ChangeKind.MOVE, a, b)],
        [FileChange(ChangeKind.COPY, b, a), delete],
    ):
        with pytest.raises(ValidationError):
            check_independent(changes)
    check_independent([FileChange(ChangeKind.COPY, b, a), FileChange(ChangeKind.COPY, c, a)])


def test_a_refusal_names_every_failed_change_but_no_state_without_permission() -> None:
    change = FileChange(ChangeKind.PUT, PATHS[0], condition=WriteCondition(absent=True))
    stale = FailedChange(replace(change, index=2), WorkspaceConflict("it exists", 3))
    absent = FailedChange(replace(change, index=0), NotFound("no such file"))
    forbidden = FailedChange(replace(change, index=1), Forbidden("no"))

    refusal = commit_refusal([stale, absent])
    assert isinstance(refusal, NotFound)
    assert [failed["index"] for failed in refusal.details["failed"]] == [0, 2]
    assert (
        refusal.details["failed"][1] | {"ifNoneMatch": "*", "currentVersion": 3}
        == (refusal.details["failed"][1])
    )

    refusal = commit_refusal([stale, forbidden, absent])
    assert isinstance(refusal, Forbidden)
    assert [failed["index"] for failed in refusal.details["failed"]] == [1]


def test_a_directory_is_expanded_to_what_is_in_it() -> None:
    files = [Path("old/a.md"), Path("old/deep/b.md")]
    contents = DirectoryContents(files, files[:1], {Path("old/empty"): FileAttributes(0o700)})
    move = FileChange(ChangeKind.MOVE, Path("new"), Path("old"))
    expanded = [(c.kind.value, c.path.text) for c in expand_directory(move, contents)]
    assert expanded == [
        ("move", "new/a.md"),
        ("move", "new/deep/b.md"),
        ("mkdir", "new/empty"),
        ("rmdir", "old/empty"),
    ]
    delete = FileChange(ChangeKind.DELETE, Path("old"))
    with pytest.raises(Conflict):
        list(expand_directory(delete, contents))
    deleted = list(expand_directory(replace(delete, recursive=True), contents))
    assert [change.path.text for change in deleted] == ["old/a.md", "old/empty"]
    with pytest.raises(ValidationError):
        list(
            expand_directory(replace(move, source_condition=WriteCondition(absent=True)), contents)
        )
    assert list(expand_directory(move, DirectoryContents())) == [move]
