"""Composing a stack of trees equals merging dictionaries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.strategies_trees import (
    SCOPES,
    apply_write,
    blob,
    entries,
    live_files,
    paths,
    stacks,
    trees,
)

from carrel.core.identifiers import Path
from carrel.core.overlay.compose import compose, layers_etag, resolve, revisions_etag, upstream_blob
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree


@given(stacks())
def test_composing_equals_a_naive_merge(layers: tuple[Tree, ...]) -> None:
    naive: dict[Path, tuple[int, Entry]] = {}
    for depth in reversed(range(len(layers))):
        naive.update({path: (depth, entry) for path, entry in live_files(layers[depth]).items()})

    composed = compose(layers)

    assert {p: (file.depth, file.entry) for p, file in composed.files.items()} == naive
    assert list(composed.files) == sorted(naive)
    for path, file in composed.files.items():
        assert (file.path, file.blob, file.source) == (path, file.entry.blob, SCOPES[file.depth])
        assert file == resolve(path, layers)


@given(stacks(), paths)
def test_a_path_that_no_layer_has_is_absent(layers: tuple[Tree, ...], path: Path) -> None:
    expected = any(path in live_files(tree) for tree in layers)

    assert (resolve(path, layers) is not None) == expected
    assert (upstream_blob(path, layers) is not None) == expected


@given(stacks(least=2), paths)
def test_an_update_is_available_when_the_layer_below_differs_from_the_base(
    layers: tuple[Tree, ...], path: Path
) -> None:
    file = resolve(path, layers)
    if file is None:
        return
    upstream = upstream_blob(path, layers[file.depth + 1 :])

    is_newer = file.depth == 0 and upstream != file.entry.base
    assert file.available_update == (upstream if is_newer else None)


@given(trees(SCOPES[0]), paths, entries)
def test_every_write_changes_the_etag_of_file_and_workspace(
    tree: Tree, path: Path, entry: Entry
) -> None:
    once = apply_write(tree, Write(tree.scope, path, entry))
    twice = apply_write(once, Write(tree.scope, path, entry))

    tags = [getattr(resolve(path, [layer]), "etag", None) for layer in (tree, once, twice)]
    assert len(set(tags)) == 3
    assert tags[1:] == [f'"v{once.version(path)}"', f'"v{twice.version(path)}"']
    assert len({layers_etag([layer]) for layer in (tree, once, twice)}) == 3


@given(entries, entries, st.integers(1, 5))
def test_equal_versions_of_two_layers_have_different_etags(
    own: Entry, beneath: Entry, version: int
) -> None:
    path = Path("a")
    layers = [
        Tree(scope, 1, {path: Head(path, version, 1, 0, entry)})
        for scope, entry in zip(SCOPES, (own, beneath), strict=False)
    ]
    gone = replace(layers[0], heads={})

    above, inherited = resolve(path, layers), resolve(path, [gone, layers[1]])

    assert above
    assert inherited
    assert above.etag != inherited.etag
    assert '"' == above.etag[0] == above.etag[-1]
    assert "," not in above.etag


@given(stacks())
def test_the_workspace_etag_depends_on_revisions_alone(layers: tuple[Tree, ...]) -> None:
    empty = [Tree(tree.scope, tree.revision, {}) for tree in layers]

    assert layers_etag(layers) == layers_etag(empty)
    stack, revisions = (tuple(t.scope for t in layers), tuple(t.revision for t in layers))
    assert layers_etag(layers) == revisions_etag(stack, revisions)
    assert layers_etag(layers) != revisions_etag(stack, revisions, "more")


def test_an_empty_file_hides_the_layer_below() -> None:
    path = Path("a")
    layers = [
        Tree(SCOPES[0], 1, {path: Head(path, 1, 1, 0, Entry(blob("")))}),
        Tree(SCOPES[1], 1, {path: Head(path, 1, 1, 0, Entry(blob("beneath")))}),
    ]

    file = resolve(path, layers)
    assert file
    assert file.blob == blob("")
