"""Deciding a write: what is put is seen, and of rivals who saw the same exactly one wins."""

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
    apply_write,
    blob,
    blobs,
    paths,
    stacks,
    trees,
)

from carrel.core.errors import NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path
from carrel.core.overlay import edit
from carrel.core.overlay.compose import resolve, upstream_blob
from carrel.core.overlay.edit import (
    UNCONDITIONAL,
    PlannedWrite,
    WriteCondition,
    parse_condition,
    parse_entity_tags,
)
from carrel.core.store.tree import Blob, Head, Tree

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


def holds(decided: PlannedWrite, layers: Layers) -> bool:
    """Whether a store that holds these trees would apply what was decided."""
    found = {tree.scope: tree.heads for tree in layers}
    return all(e.holds(found[e.scope].get(e.path)) for e in decided.expects)


def done(decided: PlannedWrite, layers: Layers) -> Layers:
    return (apply_write(layers[0], decided.write), *layers[1:])


@given(stacks(), paths, blobs)
def test_what_is_put_is_seen(layers: Layers, path: Path, content: Blob) -> None:
    decided = edit.plan_put(layers, path, content)
    assert holds(decided, layers)

    after = resolve(path, done(decided, layers))

    assert after
    assert (after.blob, after.depth, after.source) == (content, 0, layers[0].scope)
    assert after.entry.base == upstream_blob(path, layers[1:])
    assert after.available_update is None


@given(stacks(), paths, blobs, st.sampled_from([None, "text/plain"]))
def test_a_file_keeps_its_type_unless_another_is_given(
    layers: Layers, path: Path, content: Blob, given_type: str | None
) -> None:
    before = resolve(path, layers)
    entry = edit.plan_put(layers, path, content, type=given_type).write.entry

    assert entry
    assert entry.type == (given_type or (before.entry.type if before else "text/markdown"))


@given(stacks(), paths)
def test_what_is_deleted_is_gone_or_inherited_again(layers: Layers, path: Path) -> None:
    before = resolve(path, layers)
    if before is None or before.depth > 0:
        with pytest.raises(NotFound):
            edit.plan_delete(layers, path)
        return
    decided = edit.plan_delete(layers, path)
    assert holds(decided, layers)

    after = resolve(path, done(decided, layers))

    assert (after.blob if after else None) == upstream_blob(path, layers[1:])
    assert after is None or after.depth > 0


@given(stacks(), paths, st.lists(blobs, min_size=2, max_size=5))
def test_of_rivals_who_saw_the_same_exactly_one_wins(
    layers: Layers, path: Path, contents: Sequence[Blob]
) -> None:
    seen = resolve(path, layers)
    condition = WriteCondition(frozenset({seen.etag})) if seen else WriteCondition(absent=True)
    decisions = [edit.plan_put(layers, path, content, condition) for content in contents]

    won = 0
    for decided in decisions:
        if holds(decided, layers):
            layers, won = done(decided, layers), won + 1

    assert won == 1
    after = resolve(path, layers)
    assert after
    assert after.blob == contents[0]


@given(stacks(), paths, blobs, blobs)
def test_a_loser_who_decides_again_is_told_that_it_lost(
    layers: Layers, path: Path, mine: Blob, other: Blob
) -> None:
    seen = resolve(path, layers)
    condition = WriteCondition(frozenset({seen.etag})) if seen else WriteCondition(absent=True)
    layers = done(edit.plan_put(layers, path, other), layers)

    with pytest.raises(WorkspaceConflict) as stale:
        edit.plan_put(layers, path, mine, condition)

    assert stale.value.current_version == layers[0].version(path)
    assert stale.value.details == {"currentVersion": stale.value.current_version}


@given(stacks(least=2), paths, blobs, st.data())
def test_a_decision_on_a_stack_fails_when_any_layer_has_moved(
    layers: Layers, path: Path, content: Blob, data: st.DataObject
) -> None:
    decided = edit.plan_put(layers, path, content)
    which = data.draw(st.integers(0, len(layers) - 1))
    alone = (layers[which],)
    moved = apply_write(layers[which], edit.plan_put(alone, path, content).write)

    assert not holds(decided, (*layers[:which], moved, *layers[which + 1 :]))


@given(trees(SCOPES[0]), paths, paths, blobs)
def test_on_one_layer_an_unconditional_put_rests_on_nothing(
    tree: Tree, path: Path, other: Path, content: Blob
) -> None:
    decided = edit.plan_put((tree,), path, content)

    assert decided.expects == ()
    assert holds(decided, done(edit.plan_put((tree,), other, content), (tree,)))


@given(trees(SCOPES[0]), paths, blobs, conditions, st.sampled_from(TYPES))
def test_a_put_that_has_not_looked_ends_like_one_that_has(
    tree: Tree, path: Path, content: Blob, condition: WriteCondition, type: str
) -> None:
    unseen = edit.plan_put_without_read(tree.scope, path, content, condition, type)
    if unseen is None:
        return
    try:
        seen = edit.plan_put((tree,), path, content, condition, type)
    except WorkspaceConflict:
        assert not holds(unseen, (tree,))
    else:
        assert holds(unseen, (tree,))
        assert unseen.write == seen.write


@given(trees(SCOPES[0]), paths, blobs)
def test_what_most_writers_ask_for_needs_no_look(tree: Tree, path: Path, content: Blob) -> None:
    seen = resolve(path, [tree])
    usual = [UNCONDITIONAL, WriteCondition(absent=True)]
    for condition in [*usual, WriteCondition(frozenset({seen.etag}))] if seen else usual:
        assert edit.plan_put_without_read(tree.scope, path, content, condition) is not None


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
def test_what_no_version_alone_can_tell_is_looked_for(condition: WriteCondition) -> None:
    assert edit.plan_put_without_read(SCOPES[0], PATHS[0], blob("x"), condition) is None


@given(trees(SCOPES[0]), paths, blobs)
def test_if_match_any_needs_a_file_and_if_none_match_any_needs_none(
    tree: Tree, path: Path, content: Blob
) -> None:
    there = resolve(path, [tree]) is not None
    must, must_not = WriteCondition(frozenset({"*"})), WriteCondition(absent=True)

    for condition, wanted in ((must, there), (must_not, not there)):
        if wanted:
            assert holds(edit.plan_put((tree,), path, content, condition), (tree,))
        else:
            with pytest.raises(WorkspaceConflict):
                edit.plan_put((tree,), path, content, condition)


@given(stacks(), paths, blobs)
def test_both_conditions_together_never_hold(layers: Layers, path: Path, content: Blob) -> None:
    with pytest.raises(WorkspaceConflict):
        edit.plan_put(layers, path, content, WriteCondition(frozenset({"*"}), absent=True))


@given(stacks())
def test_a_conditional_delete_of_what_is_not_there_is_stale(layers: Layers) -> None:
    path = Path("never")

    with pytest.raises(WorkspaceConflict):
        edit.plan_delete(layers, path, WriteCondition(frozenset({"*"})))
    with pytest.raises(NotFound):
        edit.plan_delete(layers, path, WriteCondition(absent=True))


@given(stacks(least=2), paths, blobs)
def test_the_etag_of_an_inherited_file_does_not_delete_it(
    layers: Layers, path: Path, content: Blob
) -> None:
    above = {other: head for other, head in layers[0].heads.items() if other != path}
    beneath = apply_write(layers[1], edit.plan_put((layers[1],), path, content).write)
    inheriting = (replace(layers[0], heads=above), beneath, *layers[2:])
    seen = resolve(path, inheriting)
    assert seen
    assert seen.depth == 1

    with pytest.raises(NotFound):
        edit.plan_delete(inheriting, path, WriteCondition(frozenset({seen.etag})))


def test_of_two_who_delete_the_same_file_one_wins() -> None:
    head = Head(PATHS[0], 1, 1, 0, edit.plan_put((empty(),), PATHS[0], blob("x")).write.entry)
    layers = (Tree(SCOPES[0], 1, {PATHS[0]: head}),)
    first, second = edit.plan_delete(layers, PATHS[0]), edit.plan_delete(layers, PATHS[0])

    assert holds(first, layers)
    assert not holds(second, done(first, layers))


def empty() -> Tree:
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
def test_a_list_of_entity_tags_is_read_with_its_quotes(header: str, tags: set[str]) -> None:
    assert parse_entity_tags(header) == tags


def test_headers_become_a_condition() -> None:
    assert parse_condition(None, None) == UNCONDITIONAL
    assert parse_condition('"v3"', None) == WriteCondition(frozenset({'"v3"'}))
    assert parse_condition(None, " * ") == WriteCondition(absent=True)
    assert parse_condition("*", "*") == WriteCondition(frozenset({"*"}), absent=True)


@pytest.mark.parametrize("header", ['"v1"', "", "**", "* , *"])
def test_on_a_write_if_none_match_may_only_be_a_star(header: str) -> None:
    with pytest.raises(ValidationError):
        parse_condition(None, header)


@pytest.mark.parametrize("header", ["", '"v2"', 'W/"v1"', "v1", '"V1"', '"v1.0"'])
def test_only_the_very_tag_matches(header: str) -> None:
    layers = done(edit.plan_put((empty(),), PATHS[0], blob("x")), (empty(),))

    with pytest.raises(WorkspaceConflict):
        edit.plan_put(layers, PATHS[0], blob("y"), parse_condition(header, None))
    assert edit.plan_put(layers, PATHS[0], blob("y"), parse_condition('"v0", "v1"', None))
