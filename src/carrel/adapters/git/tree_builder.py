"""Builds git trees from files by path; rebuilds only folders that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dulwich.objects import ObjectID, ShaFile, Tree, serialize_tree, sorted_tree_items

FOLDER_MODE: Final = 0o40000
_FILE_MODE: Final = 0o100644
_Entries = dict[bytes, tuple[int, ObjectID]]


class TreeBuilder:
    """Entries of each folder.

    If a path is both a file and a folder, the tree contains the folder, since git allows only one.
    """

    def __init__(self) -> None:
        self._files: dict[str, _Entries] = {"": {}}
        self._folders: dict[str, _Entries] = {"": {}}
        self._changed: set[str] = {""}
        self.root = ObjectID(b"")
        """Id of the root tree as of the last build."""

    def set_files(self, files: Mapping[str, str | None]) -> None:
        """Set the blob of each path; None removes the file."""
        for path, id in files.items():
            folder, _, name = path.rpartition("/")
            entries = self._files.setdefault(folder, {})
            if id is None:
                entries.pop(name.encode(), None)
            else:
                entries[name.encode()] = (_FILE_MODE, ObjectID(id.encode()))
            self._changed.update(_with_parents(folder))

    def build(self) -> list[ShaFile]:
        """Return the trees that changed since the last call, the root last."""
        trees: list[ShaFile] = []
        for folder in sorted(self._changed, key=_depth, reverse=True):
            tree = self._build_tree(folder)
            if tree is not None:
                trees.append(tree)
        self._changed.clear()
        return trees

    def _build_tree(self, folder: str) -> ShaFile | None:
        files, folders = self._files.get(folder, {}), self._folders.get(folder, {})
        parent, _, name = folder.rpartition("/")
        if folder and not files and not folders:
            self._files.pop(folder, None)
            self._folders.pop(folder, None)
            self._folders.get(parent, {}).pop(name.encode(), None)
            return None
        entries = {**files, **folders} if folders else files
        text = b"".join(serialize_tree(sorted_tree_items(entries, False)))
        tree = ShaFile.from_raw_string(Tree.type_num, text)
        if folder:
            self._folders.setdefault(parent, {})[name.encode()] = (FOLDER_MODE, tree.id)
        else:
            self.root = tree.id
        return tree


def _with_parents(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _depth(folder: str) -> int:
    return folder.count("/") + 1 if folder else 0
