"""The memory store of pydantic-ai-harness over the files of a workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_ai_harness.memory import (
    MemoryConflictError,
    MemoryFile,
    MemoryMutation,
    MemoryOperation,
    MemorySearchResult,
)

from carrel_client.drivers import Steps, await_steps, steps_of
from carrel_client.errors import NotFound, WorkspaceConflict
from carrel_client.file_changes import CommitResult, DeleteFile, FileChange, PutFile
from carrel_client.file_models import File, FileRow
from carrel_client.files import Files
from carrel_client.pydantic_ai_harness.memory_records import (
    OPERATIONS,
    RECORD_SIGN,
    OperationRecord,
    WriteRecord,
    check_metadata,
    check_path,
    check_prefix,
    operation_path,
    operation_record_of,
    put_record,
    write_record_of,
    write_record_path,
)
from carrel_client.pydantic_ai_harness.memory_search import search_texts

MAX_OPERATIONS: Final = 1024
"""Finished operations that are recognised when they are repeated: the newest, at least."""
_MAX_ATTEMPTS: Final = 10


class CarrelMemoryStore:
    """Memories as files, with compare-and-set and operations that are applied once.

    ``files`` is ``client.workspace("ws_…")``, or ``client.agent("ada")`` with a prefix in
    ``memory/``; the client may await or block. A memory is a file below ``prefix`` that people can
    read and edit; a version is its ETag. A write, its metadata and its operation are one commit.
    """

    def __init__(self, files: Files[Any], *, prefix: str = "memories") -> None:
        self._files, self._driver = files, files._driver
        self._base = f"{prefix.strip('/')}/" if prefix.strip("/") else ""

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        check_path(path)
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        return await await_steps(self._driver, self._read(path, max_chars))

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        return await await_steps(self._driver, self._finished(operation))

    async def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        check_path(path)
        record = WriteRecord(
            expected_version, operation.id if operation else None, check_metadata(metadata)
        )
        steps = self._write(path, content, record, operation)
        return await await_steps(self._driver, steps)

    async def delete(
        self,
        path: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        check_path(path)
        return await await_steps(self._driver, self._delete(path, expected_version, operation))

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        check_prefix(prefix)
        if limit <= 0:
            raise ValueError("limit must be positive")
        rows = await await_steps(self._driver, self._list(prefix))
        return [path for path in rows if RECORD_SIGN not in path][:limit]

    async def search(
        self,
        prefix: str,
        query: str,
        *,
        limit: int,
        max_files: int,
        max_chars: int,
        max_file_chars: int,
    ) -> MemorySearchResult:
        """Search the files that are directly at a prefix, not those of scopes nested in it."""
        check_prefix(prefix)
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        rows = await await_steps(self._driver, self._list(prefix, content=True))
        texts = {
            path.removeprefix(prefix): _text(row)
            for path, row in rows.items()
            if RECORD_SIGN not in path and "/" not in path.removeprefix(prefix)
        }
        return search_texts(
            prefix,
            texts,
            query,
            limit=limit,
            max_files=max_files,
            max_chars=max_chars,
            max_file_chars=max_file_chars,
        )

    def _list(self, prefix: str, *, content: bool = False) -> Steps[dict[str, FileRow]]:
        """Files by the path of the memory, in order."""
        rows = yield from steps_of(self._files.list, self._base + prefix, content=content)
        return {row.path.removeprefix(self._base): row for row in rows}

    def _read(self, path: str, max_chars: int) -> Steps[MemoryFile | None]:
        rows = yield from self._list(path, content=True)
        row, record_row = rows.get(path), rows.get(write_record_path(path))
        if row is None:
            return None
        record = write_record_of(record_row)
        if record is not None and not record.describes(row, record_row or row):
            record = None
        text = _text(row)
        return MemoryFile(
            content=text[:max_chars],
            version=row.etag,
            operation_id=record.operation if record else None,
            truncated=len(text) > max_chars,
            metadata=record.metadata if record else None,
        )

    def _write(
        self, path: str, content: str, record: WriteRecord, operation: MemoryOperation | None
    ) -> Steps[MemoryMutation]:
        expected = record.replaces
        condition = {"if_none_match": "*"} if expected is None else {"if_match": expected}
        changes: list[FileChange] = [
            PutFile(path=self._base + path, content=content, **condition)  # type: ignore[arg-type]
        ]
        if record.operation is not None or record.metadata is not None:
            changes.append(put_record(self._base + write_record_path(path), record))
        return (yield from self._apply(path, changes, expected, operation))

    def _delete(
        self, path: str, expected: str | None, operation: MemoryOperation | None
    ) -> Steps[MemoryMutation]:
        for _ in range(_MAX_ATTEMPTS):
            rows = yield from self._list(path)
            row = rows.get(path)
            if (row.etag if row else None) != expected:
                return (yield from self._resolve_conflict(path, operation))
            changes: list[FileChange] = []
            if row is not None:
                changes.append(DeleteFile(path=row.path, if_match=expected))
                if (record := rows.get(write_record_path(path))) is not None:
                    changes.append(DeleteFile(path=record.path))
            try:
                return (yield from self._apply(path, changes, expected, operation))
            except NotFound:  # Another writer has removed the record.
                continue
        raise MemoryConflictError(f"others keep changing the memory {path!r}")

    def _apply(
        self,
        path: str,
        changes: list[FileChange],
        expected: str | None,
        operation: MemoryOperation | None,
    ) -> Steps[MemoryMutation]:
        """Commit the changes of a file, with the record of the operation."""
        is_write = bool(changes) and isinstance(changes[0], PutFile)
        existed = expected is not None
        if operation is not None:
            record = OperationRecord(operation.id, operation.fingerprint, path, is_write, existed)
            changes.append(put_record(self._base + operation_path(operation.id), record))
        if not changes:
            return MemoryMutation(version=None, replayed=False, existed=False)
        try:
            result: CommitResult = yield from steps_of(
                self._files.commit, changes, reason=f"memory {'write' if is_write else 'delete'}"
            )
        except WorkspaceConflict:
            return (yield from self._resolve_conflict(path, operation))
        if operation is not None and _is_due(operation):
            yield from self._prune_operations()
        version = result.changes[0].etag if is_write else None
        return MemoryMutation(version=version, replayed=False, existed=existed)

    def _resolve_conflict(
        self, path: str, operation: MemoryOperation | None
    ) -> Steps[MemoryMutation]:
        """The result of an operation that is repeated. Raises MemoryConflictError for others."""
        finished = None if operation is None else (yield from self._finished(operation))
        if finished is None:
            raise MemoryConflictError(f"memory path {path!r} changed before it could be changed")
        return finished

    def _finished(self, operation: MemoryOperation) -> Steps[MemoryMutation | None]:
        try:
            row: File = yield from steps_of(
                self._files.get, self._base + operation_path(operation.id)
            )
        except NotFound:
            return None
        record = operation_record_of(row)
        if record is None:
            return None
        record.check(operation)
        version = (yield from self._version_at(record.path, row)) if record.is_write else None
        return MemoryMutation(version=version, replayed=True, existed=record.existed)

    def _version_at(self, path: str, commit: FileRow) -> Steps[str]:
        """ETag of the version that was written in the same commit as another file."""
        name = self._base + path
        rows = yield from self._list(path)
        if path in rows and rows[path].updated_at <= commit.updated_at:
            return rows[path].etag
        try:
            versions = yield from steps_of(self._files.history, name)
            for version in versions:
                if version.updated_at <= commit.updated_at and not version.deleted:
                    file: File = yield from steps_of(self._files.get, name, version=version.version)
                    return file.etag
        except NotFound:
            pass
        return f"pruned {commit.sha256}"

    def _prune_operations(self) -> Steps[None]:
        rows: Sequence[FileRow] = tuple((yield from self._list(OPERATIONS)).values())
        oldest = sorted(rows, key=lambda row: row.updated_at)[:-MAX_OPERATIONS]
        for start in range(0, len(oldest), 500):
            changes = [DeleteFile(path=row.path) for row in oldest[start : start + 500]]
            try:
                yield from steps_of(self._files.commit, changes, reason="memory operations expire")
            except NotFound:  # Another writer prunes too.
                return


def _is_due(operation: MemoryOperation) -> bool:
    """Whether old operations are deleted after this one: about one of 256."""
    return hashlib.sha256(operation.id.encode()).digest()[0] == 0


def _text(row: FileRow) -> str:
    return row.data.decode(errors="replace") if isinstance(row, File) else ""
