"""The file operations of a deepagents backend, in steps for every driver."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob

from carrel_client.deepagents.line_window import read_window
from carrel_client.deepagents.virtual_paths import InvalidPath, VirtualPath, parse_path
from carrel_client.drivers import Sleep, Steps, steps_of
from carrel_client.errors import Conflict, Forbidden, NotFound, Refusal, WorkspaceConflict
from carrel_client.file_changes import DeleteFile, PutFile
from carrel_client.file_models import File
from carrel_client.files import Files

_MAX_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.02
"""Longest pause before the second attempt of an edit; later ones grow with the attempts."""
_INLINE_BYTES: Final = 256 * 1024
"""Files up to this size are sent as JSON, many in one commit; larger ones as bytes."""
_MAX_COMMIT_BYTES: Final = 4 * 2**20
_MAX_CHANGES: Final = 1000


class FileOperations:
    """Files by absolute names below a root."""

    def __init__(self, files: Files[Any], root: str) -> None:
        self._files, self._root = files, root

    def ls(self, path: str) -> Steps[LsResult]:
        try:
            target = parse_path(path, self._root)
            entries = yield from steps_of(self._files.list_directory, target.path)
        except (InvalidPath, Refusal) as problem:
            return LsResult(error=f"Error: {problem}")
        return LsResult(
            entries=[
                FileInfo(
                    path=target.name_of(entry.path),
                    is_dir=entry.is_directory,
                    size=entry.size,
                    modified_at=entry.updated_at.isoformat(),
                )
                for entry in entries
            ]
        )

    def read(self, name: str, offset: int, limit: int) -> Steps[ReadResult]:
        try:
            target = parse_path(name, self._root)
            content: bytes = yield from steps_of(self._files.read_bytes, target.path)
        except NotFound:
            if (yield from self._is_directory(target)):
                return ReadResult(error=f"Error: '{name}' is a directory")
            return ReadResult(error=f"File '{name}' not found")
        except (InvalidPath, Refusal) as problem:
            return ReadResult(error=f"Error: {problem}")
        return read_window(name, content, offset, limit)

    def write(self, name: str, content: str) -> Steps[WriteResult]:
        try:
            yield from self._put(parse_path(name, self._root).path, content.encode())
        except (InvalidPath, Refusal) as problem:
            return WriteResult(error=f"Error: {problem}")
        return WriteResult(path=name)

    def edit(self, name: str, old: str, new: str, *, replace_all: bool) -> Steps[EditResult]:
        """Replace text in the version that was read; repeated if another writer was faster."""
        if not old:
            return EditResult(error="Error: old_string must not be empty")
        try:
            target = parse_path(name, self._root)
            for attempt in range(_MAX_ATTEMPTS):
                file: File = yield from steps_of(self._files.get, target.path)
                if problem := _edit_problem(name, file, old, replace_all=replace_all):
                    return EditResult(error=problem)
                text = file.content.replace(old, new)
                try:
                    yield from self._put(target.path, text.encode(), if_match=file.etag)
                except WorkspaceConflict:
                    yield Sleep(random.random() * _PAUSE_SECONDS * (attempt + 1))
                    continue
                return EditResult(path=name, occurrences=file.content.count(old))
        except NotFound:
            return EditResult(error=f"Error: File '{name}' not found")
        except (InvalidPath, Refusal) as problem:
            return EditResult(error=f"Error: {problem}")
        return EditResult(error=f"Error: '{name}' was changed by others all the time; try again")

    def delete(self, name: str) -> Steps[DeleteResult]:
        try:
            target = parse_path(name, self._root)
            change = DeleteFile(path=target.path, recursive=True)
            yield from steps_of(self._files.commit, [change])
        except NotFound:
            return DeleteResult(error=f"Error: File '{name}' not found")
        except (InvalidPath, Refusal) as problem:
            return DeleteResult(error=f"Error: {problem}")
        return DeleteResult(path=name)

    def glob(self, pattern: str, path: str | None) -> Steps[GlobResult]:
        try:
            target = parse_path(path or self._root, self._root)
            is_match = compile_grep_include_glob(pattern)
            rows = yield from steps_of(self._files.list, target.directory)
        except (InvalidPath, InvalidGlobPatternError, Refusal) as problem:
            return GlobResult(error=f"Error: {problem}")
        fitting = [row for row in rows if is_match(target.relative(row.path))]
        fitting.sort(key=_modified_at, reverse=True)
        return GlobResult(
            matches=[
                FileInfo(
                    path=target.name_of(row.path),
                    is_dir=False,
                    size=row.size or 0,
                    modified_at=row.updated_at.isoformat(),
                )
                for row in fitting
            ]
        )

    def grep(
        self, pattern: str, path: str | None, glob: str | None, max_count: int | None
    ) -> Steps[GrepResult]:
        """Search literally in all text files below a directory, or in one file."""
        try:
            target = parse_path(path or self._root, self._root)
            is_match = compile_grep_include_glob(glob) if glob else None
            rows = yield from steps_of(self._files.list, target.path, content=True)
        except (InvalidPath, InvalidGlobPatternError, Refusal) as problem:
            return GrepResult(error=f"Error: {problem}")
        matches: list[GrepMatch] = []
        for row in rows:
            is_below = row.path == target.path or row.path.startswith(target.directory)
            if not is_below or (is_match and not is_match(target.relative(row.path))):
                continue
            file = (
                row if isinstance(row, File) else (yield from steps_of(self._files.get, row.path))
            )
            matches += _matching_lines(target.name_of(row.path), file, pattern)
            if max_count is not None and len(matches) > max_count:
                return GrepResult(matches=matches[:max_count], truncated=True)
        return GrepResult(matches=matches)

    def upload(self, contents: Sequence[tuple[str, bytes]]) -> Steps[list[FileUploadResponse]]:
        """Small files in as few commits as possible; one that is refused fails alone."""
        errors: dict[int, str | None] = {}
        pending: dict[int, tuple[str, bytes]] = {}
        for index, (name, content) in enumerate(contents):
            try:
                pending[index] = (parse_path(name, self._root).path, content)
            except InvalidPath:
                errors[index] = INVALID_PATH
        for batch in _commits(pending):
            try:
                yield from self._put_all([pending[index] for index in batch])
            except Refusal:
                for index in batch:
                    errors[index] = yield from self._put_one(*pending[index])
        return [
            FileUploadResponse(path=name, error=errors.get(index))
            for index, (name, _) in enumerate(contents)
        ]

    def download(self, names: Sequence[str]) -> Steps[list[FileDownloadResponse]]:
        responses = []
        for name in names:
            responses.append((yield from self._download_one(name)))
        return responses

    def _download_one(self, name: str) -> Steps[FileDownloadResponse]:
        try:
            target = parse_path(name, self._root)
            content = yield from steps_of(self._files.read_bytes, target.path)
        except NotFound:
            is_directory = yield from self._is_directory(target)
            error: str = IS_DIRECTORY if is_directory else FILE_NOT_FOUND
            return FileDownloadResponse(path=name, error=error)
        except (InvalidPath, Refusal) as problem:
            return FileDownloadResponse(path=name, error=_error_code(problem))
        return FileDownloadResponse(path=name, content=content)

    def _put_all(self, contents: Sequence[tuple[str, bytes]]) -> Steps[None]:
        if len(contents) == 1:
            yield from self._put(*contents[0])
            return
        changes = [PutFile(path=path, content=content) for path, content in contents]
        yield from steps_of(self._files.commit, changes)

    def _put_one(self, path: str, content: bytes) -> Steps[str | None]:
        try:
            yield from self._put(path, content)
        except Refusal as refusal:
            return _error_code(refusal)
        return None

    def _put(self, path: str, content: bytes, if_match: str | None = None) -> Steps[None]:
        is_small = len(content) <= _INLINE_BYTES
        write = self._files.put if is_small else self._files.upload
        yield from steps_of(write, path, content, if_match=if_match)

    def _is_directory(self, target: VirtualPath) -> Steps[bool]:
        if not target.path:
            return True
        parent = target.path.rpartition("/")[0]
        entries = yield from steps_of(self._files.list_directory, parent)
        return any(entry.path == target.path and entry.is_directory for entry in entries)


def _edit_problem(name: str, file: File, old: str, *, replace_all: bool) -> str | None:
    if file.encoding is not None:
        return "Error: Cannot edit binary files with text replacements."
    count = file.content.count(old)
    if count == 0:
        return f"Error: String not found in file: '{old}'"
    if count > 1 and not replace_all:
        return (
            f"Error: String '{old}' appears multiple times ({count}) in '{name}'. Use"
            " replace_all=True to replace all of them, or give more of the text around it."
        )
    return None


def _matching_lines(name: str, file: File, pattern: str) -> list[GrepMatch]:
    if file.encoding is not None or pattern not in file.content:
        return []
    return [
        GrepMatch(path=name, line=number, text=line)
        for number, line in enumerate(file.content.splitlines(), 1)
        if pattern in line
    ]


def _commits(contents: dict[int, tuple[str, bytes]]) -> list[list[int]]:
    """Positions of the files that one commit takes: small ones, each path once."""
    batches: list[list[int]] = []
    paths: set[str] = set()
    size = _MAX_COMMIT_BYTES
    for index, (path, content) in contents.items():
        is_full = len(paths) == _MAX_CHANGES or size + len(content) > _MAX_COMMIT_BYTES
        if is_full or path in paths:
            batches.append([])
            paths, size = set(), 0
        batches[-1].append(index)
        paths.add(path)
        size += len(content)
        if len(content) > _INLINE_BYTES:
            size = _MAX_COMMIT_BYTES
    return batches


def _error_code(problem: InvalidPath | Refusal) -> str:
    if isinstance(problem, NotFound):
        return FILE_NOT_FOUND
    if isinstance(problem, Forbidden):
        return PERMISSION_DENIED
    if isinstance(problem, InvalidPath) or problem.code == "validation_error":
        return INVALID_PATH
    return IS_DIRECTORY if isinstance(problem, Conflict) else str(problem)


def _modified_at(row: Any) -> datetime:
    modified_at: datetime = row.updated_at
    return modified_at
