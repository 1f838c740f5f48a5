"""Planning a write: a put is readable, and of concurrent writers exactly one wins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.strategies_trees import (
    PATHS,
    SCOPES,
    TYPES,
    blob,
    blobs,
    paths,
    stacks,
    trees,
)
from tests.support.strategies_trees import (
    apply_write as written,
)

from carrel.core.errors import NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path
from carrel.core.overlay import planned_writes
from carrel.core.overlay.compose import resolve, upstream_blob
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.overlay.write_condition import (
    UNCONDITIONAL,
    WriteCondition,
    parse_condition,
    parse_entity_tags,
)
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Head
from carrel.core.store.tree import Tree

Layers = tuple[Tree, ...]

TAGS = [
    *(f'"v{number}"' for number in range(11)),
    *("*", "v1", 'W/"v1"', '"V1"', '"v01"', '"v1.abc"', '"v-1"', '"v1"x', '"v\u0661"', '"v"', '""'),
    f'"v{10**17}"',
    f'"v{10**30}"',
]
conditions = st.builds(
    WriteCondition, st.none() | st.frozensets(st.sampled_from(TAGS), max_size=2), st.booleans()
)


def holds(planned: PlannedWrite, layers: Layers) -> bool:
    """Whether a store with these trees would apply the planned write."""
    heads = {tree.scope: tree.heads for tree in layers}
    return all(e.holds(heads[e.scope].get(e.path)) for e in planned.expects)


def apply_write(planned: PlannedWrite, layers: Layers) -> Layers:
    return (written(layers[0], planned.write), *layers[1:])


@given(stacks(), paths, blobs)
def test_a_put_is_readable_as_own_content(layers: Layers, path: Path, content: Blob) -> None:
    planned = planned_writes.plan_put(layers, path, content)
    assert holds(planned, layers)

    after = resolve(path, apply_write(planned, layers))

    assert after
    assert (after.blob, after.depth, after.source) == (content, 0, layers[0].scope)
    assert after.entry.base == upstream_blob(path, layers[1:])
    assert after.available_update is None


@given(stacks(), paths, blobs, st.sampled_from([None, "text/plain"]))
def test_a_put_without_a_type_keeps_the_type_of_the_file(
    layers: Layers, path: Path, content: Blob, new_type: str | None
) -> None:
    before = resolve(path, layers)
    entry = planned_writes.plan_put(layers, path, content, type=new_type).write.entry

    assert entry
    assert entry.type == (new_type or (before.entry.type if before else "text/markdown"))


@given(stacks(), paths)
def test_a_deleted_file_is_absent_or_inherited_again(layers: Layers, path: Path) -> None:
    before = resolve(path, layers)
    if before is None or before.depth > 0:
        with pytest.raises(NotFound):
            planned_writes.plan_delete(layers, path)
        return
    planned = planned_writes.plan_delete(layers, path)
    assert holds(planned, layers)

    after = resolve(path, apply_write(planned, layers))

    assert (after.blob if after else None) == upstream_blob(path, layers[1:])
    assert after is None or after.depth > 0


@given(stacks(), paths, st.lists(blobs, min_size=2, max_size=5))
def test_of_concurrent_writers_with_one_etag_exactly_one_wins(
    layers: Layers, path: Path, contents: Sequence[Blob]
) -> None:
    current = resolve(path, layers)
    condition = (
        WriteCondition(frozenset({current.etag})) if current else WriteCondition(absent=True)
    )
    decisions = [planned_writes.plan_put(layers, path, content, condition) for content in contents]

    won = 0
    for planned in decisions:
        if holds(planned, layers):
            layers, won = apply_write(planned, layers), won + 1

    assert won == 1
    after = resolve(path, layers)
    assert after
    assert after.blob == contents[0]


@given(stacks(), paths, blobs, blobs)
def test_planning_again_after_a_lost_race_raises_a_conflict(
    layers: Layers, path: Path, mine: Blob, other: Blob
) -> None:
    current = resolve(path, layers)
    condition = (
        WriteCondition(frozenset({current.etag})) if current else WriteCondition(absent=True)
    )
    layers = apply_write(planned_writes.plan_put(layers, path, other), layers)

    with pytest.raises(WorkspaceConflict) as stale:
        planned_writes.plan_put(layers, path, mine, condition)

    assert stale.value.current_version == layers[0].version(path)
    assert stale.value.details == {"currentVersion": stale.value.current_version}


@given(stacks(least=2), paths, blobs, st.data())
def test_a_planned_write_on_a_stack_fails_when_any_layer_has_changed(
    layers: Layers, path: Path, content: Blob, data: st.DataObject
) -> None:
    planned = planned_writes.plan_put(layers, path, content)
    index = data.draw(st.integers(0, len(layers) - 1))
    alone = (layers[index],)
    moved = written(layers[index], planned_writes.plan_put(alone, path, content).write)

    assert not holds(planned, (*layers[:index], moved, *layers[index + 1 :]))


@given(trees(SCOPES[0]), paths, paths, blobs)
def test_an_unconditional_put_on_one_layer_has_no_expectations(
    tree: Tree, path: Path, other: Path, content: Blob
) -> None:
    planned = planned_writes.plan_put((tree,), path, content)

    assert planned.expects == ()
    assert holds(planned, apply_write(planned_writes.plan_put((tree,), other, content), (tree,)))


@given(trees(SCOPES[0]), paths, blobs, conditions, st.sampled_from(TYPES))
def test_a_put_planned_without_a_read_ends_like_one_with_a_read(
    tree: Tree, path: Path, content: Blob, condition: WriteCondition, type: str
) -> None:
    blind = planned_writes.plan_put_without_read(tree.scope, path, content, condition, type)
    if blind is None:
        return
    try:
        informed = planned_writes.plan_put((tree,), path, content, condition, type)
    except WorkspaceConflict:
        assert not holds(blind, (tree,))
    else:
        assert holds(blind, (tree,))
        assert blind.write == informed.write


@given(trees(SCOPES[0]), paths, blobs)
def test_common_conditions_need_no_read(tree: Tree, path: Path, content: Blob) -> None:
    current = resolve(path, [tree])
    usual = [UNCONDITIONAL, WriteCondition(absent=True)]
    for condition in [*usual, WriteCondition(frozenset({current.etag}))] if current else usual:
        assert (
            planned_writes.plan_put_without_read(tree.scope, path, content, condition) is not None
        )


@pytest.mark.parametrize(
    "condition",
    [
        WriteCondition(frozenset()),
        WriteCondition(frozenset({"*"})),
        WriteCondition(frozenset({'"v1"', '"v2"'})),
        WriteCondition(frozenset({'"v0"'})),
        WriteCondition(frozenset({'"v1.abc"'})),
        WriteCondition(frozenset({'"v1"x'})),
        WriteCondition(frozenset({f'"v{10**30}"'})),
        WriteCondition(frozenset({'"v1"'}), absent=True),
    ],
)
def test_a_condition_that_no_single_version_decides_needs_a_read(condition: WriteCondition) -> None:
    assert planned_writes.plan_put_without_read(SCOPES[0], PATHS[0], blob("x"), condition) is None


@given(trees(SCOPES[0]), paths, blobs)
def test_if_match_any_needs_a_file_and_if_none_match_any_needs_its_absence(
    tree: Tree, path: Path, content: Blob
) -> None:
    exists = resolve(path, [tree]) is not None
    must_exist, must_be_absent = WriteCondition(frozenset({"*"})), WriteCondition(absent=True)

    for condition, expected in ((must_exist, exists), (must_be_absent, not exists)):
        if expected:
            assert holds(planned_writes.plan_put((tree,), path, content, condition), (tree,))
        else:
            with pytest.raises(WorkspaceConflict):
                planned_writes.plan_put((tree,), path, content, condition)


@given(stacks(), paths, blobs)
def test_both_conditions_together_never_hold(layers: Layers, path: Path, content: Blob) -> None:
    with pytest.raises(WorkspaceConflict):
        planned_writes.plan_put(
            layers, path, content, WriteCondition(frozenset({"*"}), absent=True)
        )


@given(stacks())
def test_a_conditional_delete_of_an_absent_file_conflicts(layers: Layers) -> None:
    path = Path("never")

    with pytest.raises(WorkspaceConflict):
        planned_writes.plan_delete(layers, path, WriteCondition(frozenset({"*"})))
    with pytest.raises(NotFound):
        planned_writes.plan_delete(layers, path, WriteCondition(absent=True))


@given(stacks(least=2), paths, blobs)
def test_the_etag_of_an_inherited_file_does_not_delete_it(
    layers: Layers, path: Path, content: Blob
) -> None:
    above = {other: head for other, head in layers[0].heads.items() if other != path}
    beneath = written(layers[1], planned_writes.plan_put((layers[1],), path, content).write)
    inheriting = (replace(layers[0], heads=above), beneath, *layers[2:])
    current = resolve(path, inheriting)
    assert current
    assert current.depth == 1

    with pytest.raises(NotFound):
        planned_writes.plan_delete(inheriting, path, WriteCondition(frozenset({current.etag})))


def test_of_two_deletes_of_the_same_file_one_wins() -> None:
    head = Head(
        PATHS[0], 1, 1, 0, planned_writes.plan_put((empty_tree(),), PATHS[0], blob("x")).write.entry
    )
    layers = (Tree(SCOPES[0], 1, {PATHS[0]: head}),)
    first, second = (
        planned_writes.plan_delete(layers, PATHS[0]),
        planned_writes.plan_delete(layers, PATHS[0]),
    )

    assert holds(first, layers)
    assert not holds(second, apply_write(first, layers))


def empty_tree() -> Tree:
    return Tree(SCOPES[0], 0, {})


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ('"v1"', {'"v1"'}),
        ('"v1", "v2"', {'"v1"', '"v2"'}),
        (' "v1" ,, "v2.abc" ,', {'"v1"', '"v2.abc"'}),
        ("*", {"*"}),
        ('W/"v1"', {'W/"v1"'}),
        ("v1", {"v1"}),
        ("", set()),
    ],
)
def test_a_list_of_entity_tags_is_parsed_with_its_quotes(header: str, tags: set[str]) -> None:
    assert parse_entity_tags(header) == tags


def test_headers_become_a_condition() -> None:
    assert parse_condition(None, None) == UNCONDITIONAL
    assert parse_condition('"v3"', None) == WriteCondition(frozenset({'"v3"'}))
    assert parse_condition(None, " * ") == WriteCondition(absent=True)
    assert parse_condition("*", "*") == WriteCondition(frozenset({"*"}), absent=True)


@pytest.mark.parametrize("header", ['"v1"', "", "**", "* , *"])
def test_if_none_match_on_a_write_accepts_only_a_star(header: str) -> None:
    with pytest.raises(ValidationError):
        parse_condition(None, header)


@pytest.mark.parametrize("header", ["", '"v2"', 'W/"v1"', "v1", '"V1"', '"v1.0"'])
def test_only_the_exact_tag_matches(header: str) -> None:
    layers = apply_write(
        planned_writes.plan_put((empty_tree(),), PATHS[0], blob("x")), (empty_tree(),)
    )

    with pytest.raises(WorkspaceConflict):
        planned_writes.plan_put(layers, PATHS[0], blob("y"), parse_condition(header, None))
    assert planned_writes.plan_put(layers, PATHS[0], blob("y"), parse_condition('"v0", "v1"', None))
