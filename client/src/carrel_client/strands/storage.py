"""Strands' storage over files: one file for each key, with versions."""

from __future__ import annotations

import builtins
import copy
import re
from typing import Any, Final

from strands.storage.search import KeywordSearchStrategy, SearchStrategy, StorageSearchResult
from strands.storage.storage import _NAMESPACED
from strands.types.exceptions import StorageError

from carrel_client.drivers import Steps, await_steps, steps_of
from carrel_client.errors import CarrelError, NotFound
from carrel_client.file_models import File
from carrel_client.files import Files
from carrel_client.runtimes.key_paths import directory_of_prefix, key_to_path, path_to_key

DEFAULT_PREFIX: Final = "strands/storage"


class CarrelStorage:
    """A Strands ``Storage`` in the files of a workspace, or of an agent.

    ``files`` is ``client.workspace("ws_…")`` or another layer, of a Client or an AsyncClient. The
    key ``a/b.md`` is the file ``<prefix>/a/b.md``; segments that no path can have are encoded. A
    key cannot be the beginning of another one, as ``a`` is of ``a/b``. Every write is a version
    with its author, and secrets are redacted.
    """

    def __init__(
        self,
        files: Files[Any],
        *,
        prefix: str = DEFAULT_PREFIX,
        search_strategy: SearchStrategy[Any] | None = None,
    ) -> None:
        self._files, self._driver = files, files._driver
        self._root = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._search_strategy = search_strategy

    async def write(self, key: str, data: bytes) -> None:
        """Store bytes under a key, replacing what is there. Raises StorageError."""
        name, content = normalize_key(key), bytes(data)
        await self._run("write", key, steps_of(self._files.upload, self._path(name), content))
        if self._search_strategy is None:
            return
        try:
            await self._search_strategy.index(self, name, data)
        except Exception as error:
            raise StorageError(f"{key!r} is written, but not indexed") from error

    async def read(self, key: str) -> bytes | None:
        """The bytes of a key, None if it does not exist. Raises StorageError."""
        path = self._path(normalize_key(key))
        try:
            content: bytes = await self._run("read", key, steps_of(self._files.read_bytes, path))
        except _Missing:
            return None
        return content

    async def delete(self, key: str) -> None:
        """Delete a key, if it exists. Raises StorageError."""
        path = self._path(normalize_key(key))
        try:
            await self._run("delete", key, steps_of(self._files.delete, path))
        except _Missing:
            return

    async def list(self, query: str = "") -> builtins.list[str]:
        """The keys with a prefix, in order. Raises StorageError."""
        prefix = normalize_prefix(query)
        rows = await self._run("list", query, self._rows(prefix, content=False))
        return sorted(key for key in map(self._key, rows) if key.startswith(prefix))

    async def search(self, query: str) -> builtins.list[StorageSearchResult]:
        """Search with the strategy, or by keywords in all contents, fetched in one request."""
        if self._search_strategy is not None:
            return list(await self._search_strategy.search(self, query))
        rows = await self._run("search", query, self._rows("", content=True))
        contents = {self._key(row): row for row in rows}
        return list(await KeywordSearchStrategy().search(_FetchedContents(self, contents), query))

    def namespace(self, prefix: str) -> CarrelStorage:
        """The storage of the keys below a prefix, without the prefix."""
        scoped = copy.copy(self)
        name = normalize_prefix(prefix).rstrip("/")
        scoped._root = self._root + (f"{key_to_path(name)}/" if name else "")
        scoped._namespaced = _NAMESPACED  # type: ignore[attr-defined]  # read by Strands
        return scoped

    def _path(self, key: str) -> str:
        try:
            return self._root + key_to_path(key)
        except ValueError as error:
            raise StorageError(str(error)) from None

    def _key(self, row: Any) -> str:
        return path_to_key(row.path[len(self._root) :])

    def _rows(self, prefix: str, *, content: bool) -> Steps[Any]:
        directory = self._root + directory_of_prefix(prefix)
        return steps_of(self._files.list, directory, content=content)

    async def _run(self, action: str, key: str, steps: Steps[Any]) -> Any:
        try:
            return await await_steps(self._driver, steps)
        except NotFound as error:
            raise _Missing(f"cannot {action} {key!r}: {error}") from error
        except CarrelError as error:
            raise StorageError(f"cannot {action} {key!r}: {error}") from error


class _Missing(StorageError):
    """The key, or the workspace, does not exist."""


class _FetchedContents(CarrelStorage):
    """A storage whose contents were fetched with its listing."""

    def __init__(self, storage: CarrelStorage, contents: dict[str, Any]) -> None:
        self.__dict__.update(storage.__dict__)
        self._contents = contents

    async def read(self, key: str) -> bytes | None:
        row = self._contents.get(key)
        return row.data if isinstance(row, File) else await super().read(key)

    async def list(self, query: str = "") -> builtins.list[str]:
        return sorted(key for key in self._contents if key.startswith(query))


def normalize_key(key: str) -> str:
    """A key as Strands' own storages understand it. Raises StorageError."""
    name = normalize_prefix(key).strip("/")
    if not name:
        raise StorageError("a storage key must not be empty")
    return name


def normalize_prefix(prefix: str) -> str:
    """A prefix without empty segments. Raises StorageError for backslashes and ``..``."""
    name = re.sub("/+", "/", prefix).lstrip("/")
    if "\\" in name or ".." in name.split("/"):
        raise StorageError(f"{prefix!r} is not a storage key: it has a backslash or '..'")
    return name
