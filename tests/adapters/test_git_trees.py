"""Git trees: equal whether they are built at once or changed step by step."""

from __future__ import annotations

from dulwich.index import commit_tree
from dulwich.object_store import MemoryObjectStore
from hypothesis import given
from hypothesis import strategies as st

from carrel.adapters.git.tree_builder import TreeBuilder

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
segments = st.sampled_from(["a", "b", "a.md", "a-", "A", "é", "a b"])
paths = st.lists(segments, min_size=1, max_size=3).map("/".join)
blob_ids = st.binary(min_size=20, max_size=20).map(bytes.hex)


@given(st.lists(st.tuples(paths, st.none() | blob_ids), max_size=12))
def test_incrementally_changed_trees_equal_trees_built_at_once(
    steps: list[tuple[str, str | None]],
) -> None:
    builder, files, store = TreeBuilder(), dict[str, str](), MemoryObjectStore()
    for path, id in steps:
        builder.set_files({path: id})
        files.pop(path, None)
        if id is not None:
            files[path] = id
        for tree in builder.build():
            tree.check()
            store.add_object(tree)
        visible = _without_hidden(files)
        entries = [(path.encode(), id.encode(), 0o100644) for path, id in visible.items()]
        assert builder.root == commit_tree(MemoryObjectStore(), entries)  # type: ignore[arg-type]
        contents = store.iter_tree_contents(builder.root)
        assert {row.path.decode(): row.sha.decode() for row in contents} == visible


def _without_hidden(files: dict[str, str]) -> dict[str, str]:
    """Git cannot store a file whose path is also a folder."""
    return {
        path: id
        for path, id in files.items()
        if not any(other.startswith(f"{path}/") for other in files)
    }


def test_no_files_are_the_empty_tree() -> None:
    builder = TreeBuilder()
    builder.build()
    assert builder.root.decode() == EMPTY_TREE
