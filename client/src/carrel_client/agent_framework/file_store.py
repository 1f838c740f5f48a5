"""Agent Framework's file store over the files of a workspace or an agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from agent_framework import AgentFileStore, FileSearchResult, FileStoreEntry

from carrel_client.drivers import Result, Steps, await_steps, steps_of
from carrel_client.errors import Conflict, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel_client.file_models import File
from carrel_client.files import Files

_FETCHED: ContextVar[dict[str, str] | None] = ContextVar("carrel_fetched", default=None)
"""Contents by path that a search has fetched with its listing."""


class CarrelFileStore(AgentFileStore):
    """An Agent Framework ``AgentFileStore``: give it to ``FileAccessProvider``.

    ``files`` is ``client.workspace("ws_…")`` or ``client.agent("ada")``, of a Client or an
    AsyncClient; with a ``directory``, the store has what is in it. Every write is a version with
    its author, and secrets are redacted. Names differ by case.
    """

    def __init__(self, files: Files[Any], *, directory: str = "") -> None:
        self._files, self._driver = files, files._driver
        self._root = f"{directory.strip('/')}/" if directory.strip("/") else ""

    async def write(self, path: str, content: str, *, overwrite: bool = True) -> None:
        """Write a file. Raises FileExistsError if there is one and it may not be replaced."""
        condition = {} if overwrite else {"if_none_match": "*"}
        steps = steps_of(self._files.upload, self._path(path), content.encode(), **condition)
        await self._run(path, steps)

    async def read(self, path: str) -> str | None:
        """The text of a file, None if there is none. Raises ValueError if it is not text."""
        target = self._path(path)
        text = (_FETCHED.get() or {}).get(target)
        if text is not None:
            return text
        try:
            content: bytes = await self._run(path, steps_of(self._files.read_bytes, target))
        except FileNotFoundError:
            return None
        return content.decode()

    async def delete(self, path: str) -> bool:
        if not await self.file_exists(path):
            return False
        try:
            await self._run(path, steps_of(self._files.delete, self._path(path)))
        except FileNotFoundError:
            return False
        return True

    async def list_children(self, directory: str = "") -> list[FileStoreEntry]:
        target = self._root + normalize_directory(directory)
        try:
            steps = steps_of(self._files.list_directory, target.rstrip("/"))
            entries = await self._run(directory, steps)
        except FileNotFoundError:
            return []
        kinds = {True: FileStoreEntry.DIRECTORY, False: FileStoreEntry.FILE}
        children = [
            FileStoreEntry(entry.path.rpartition("/")[2], kinds[entry.is_directory])
            for entry in entries
        ]
        return sorted(children, key=lambda child: child.type != FileStoreEntry.DIRECTORY)

    async def file_exists(self, path: str) -> bool:
        target = self._path(path)
        rows = await self._run(path, steps_of(self._files.list, target))
        return any(row.path == target for row in rows)

    async def search(
        self,
        directory: str,
        regex_pattern: str,
        glob_pattern: str | None = None,
        *,
        recursive: bool = False,
    ) -> list[FileSearchResult]:
        """Search in contents that are fetched with one request."""
        with _fetched_contents():
            return await super().search(directory, regex_pattern, glob_pattern, recursive=recursive)

    async def find_matching_files(
        self,
        directory: str,
        regex_pattern: str,
        glob_pattern: str | None = None,
        *,
        recursive: bool = False,
    ) -> list[str]:
        """The paths of all files below a directory; the caller applies the patterns."""
        prefix = self._root + normalize_directory(directory)
        contents = _FETCHED.get()
        rows = await self._run(
            directory, steps_of(self._files.list, prefix, content=contents is not None)
        )
        names = {row.path[len(prefix) :]: row for row in rows}
        in_scope = {name: row for name, row in names.items() if recursive or "/" not in name}
        if contents is not None:
            for row in in_scope.values():
                if isinstance(row, File) and row.encoding is None:
                    contents[row.path] = row.content
        return list(in_scope)

    async def create_directory(self, path: str) -> None:
        target = (self._root + normalize_directory(path)).rstrip("/")
        if target:
            await self._run(path, steps_of(self._files.make_directory, target))

    def _path(self, path: str) -> str:
        return self._root + normalize_path(path)

    async def _run(self, path: str, steps: Steps[Result]) -> Result:
        """Raises the errors of files that Agent Framework expects."""
        try:
            return await await_steps(self._driver, steps)
        except NotFound as error:
            raise FileNotFoundError(f"{path!r}: {error}") from error
        except WorkspaceConflict as error:
            raise FileExistsError(f"{path!r}: {error}") from error
        except Conflict as error:
            raise OSError(f"{path!r}: {error}") from error
        except Forbidden as error:
            raise PermissionError(f"{path!r}: {error}") from error
        except ValidationError as error:
            raise ValueError(f"{path!r}: {error}") from error


def normalize_path(path: str) -> str:
    """The path of a file as Agent Framework's stores understand it. Raises ValueError."""
    name = normalize_directory(path).rstrip("/")
    if not name or path.strip().endswith(("/", "\\")):
        raise ValueError(f"{path!r} is not the path of a file")
    return name


def normalize_directory(path: str) -> str:
    """The path of a directory with its slash, empty for the root. Raises ValueError."""
    name = path.strip().replace("\\", "/")
    segments = [segment for segment in name.split("/") if segment]
    has_drive = bool(segments) and segments[0][:1].isalpha() and segments[0][1:2] == ":"
    if name.startswith("/") or has_drive or {".", ".."} & set(segments):
        raise ValueError(f"{path!r} is not a relative path without '.' and '..'")
    return "".join(f"{segment}/" for segment in segments)


@contextmanager
def _fetched_contents() -> Iterator[None]:
    token = _FETCHED.set({})
    try:
        yield
    finally:
        _FETCHED.reset(token)
