"""Files by path as git has them: a tree for every folder, made anew only where it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from carrel.core.git.objects import GitObject, tree


class GitTreeBuilder:
    """Where a path is that of a file and of a folder too, git can hold one: the folder is shown."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, str]] = {"": {}}
        """The ids of files by the folder they are in and their name."""
        self._folders: dict[str, dict[str, str]] = {"": {}}
        """The same of folders that hold something."""
        self._changed: set[str] = {""}
        self.root = ""
        """The id of the outermost tree, once it has grown."""

    def put(self, path: str, id: str | None) -> None:
        """None takes the file away."""
        folder, _, name = path.rpartition("/")
        files = self._files.setdefault(folder, {})
        if id is None:
            files.pop(name, None)
        else:
            files[name] = id
        self._changed.update(_upwards(folder))

    def grown(self) -> list[GitObject]:
        """The trees that differ from those of the last time, the outermost last."""
        new: list[GitObject] = []
        for folder in sorted(self._changed, key=_depth, reverse=True):
            found = self._tree(folder)
            if found is not None:
                new.append(found)
        self._changed.clear()
        return new

    def _tree(self, folder: str) -> GitObject | None:
        files, folders = self._files.get(folder, {}), self._folders.get(folder, {})
        above, _, name = folder.rpartition("/")
        if folder and not files and not folders:
            self._files.pop(folder, None)
            self._folders.pop(folder, None)
            self._folders.get(above, {}).pop(name, None)
            return None
        shown = _without(files, folders)
        found = tree(shown, folders)
        if folder:
            self._folders.setdefault(above, {})[name] = found.id
        else:
            self.root = found.id
        return found


def _without(files: Mapping[str, str], folders: Mapping[str, str]) -> Mapping[str, str]:
    if files.keys().isdisjoint(folders):
        return files
    return {name: id for name, id in files.items() if name not in folders}


def _upwards(folder: str) -> Iterator[str]:
    """A folder and all that it is in."""
    yield folder
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _depth(folder: str) -> int:
    return folder.count("/") + 1 if folder else 0
