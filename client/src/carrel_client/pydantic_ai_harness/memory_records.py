"""What a memory store keeps beside its files: the last write of each, and finished operations."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from pydantic_ai_harness.memory import MemoryOperation, MemoryOperationConflictError

from carrel_client.file_changes import PutFile
from carrel_client.file_models import File, FileRow

RECORD_SIGN: Final = "~"
"""In the names of records; the path of a memory cannot have it."""
OPERATIONS: Final = f"{RECORD_SIGN}operations/"
MAX_METADATA_CHARS: Final = 4096
_WRITE_SUFFIX: Final = f"{RECORD_SIGN}write.json"
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """The operation and the metadata of a write; written in the same commit as its file."""

    replaces: str | None
    """ETag of the version that was replaced."""
    operation: str | None
    metadata: Mapping[str, str] | None

    def describes(self, file: FileRow, record: FileRow) -> bool:
        """Whether nobody else has written the file since."""
        return record.updated_at == file.updated_at or self.replaces == file.etag


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """A finished operation, by which it is recognised when it is repeated."""

    id: str
    fingerprint: str
    path: str
    is_write: bool
    existed: bool

    def check(self, operation: MemoryOperation) -> None:
        """Raises MemoryOperationConflictError."""
        if self.fingerprint != operation.fingerprint:
            raise MemoryOperationConflictError(
                f"operation id {operation.id!r} was reused with different arguments"
            )


def check_path(path: str) -> None:
    """Raises ValueError for a path that could name another one."""
    segments = path.split("/")
    if not all(_SEGMENT.fullmatch(part) and ".." not in part and part != "." for part in segments):
        raise ValueError(f"invalid memory path: {path!r}")


def check_prefix(prefix: str) -> None:
    if prefix:
        check_path(prefix.removesuffix("/"))


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    """None if there is none. Raises TypeError, ValueError."""
    if not metadata:
        return None
    texts = [*metadata.keys(), *metadata.values()]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("memory metadata keys and values must be strings")
    if any("\0" in text for text in texts):
        raise ValueError("memory metadata keys and values must not contain NUL characters")
    length = len(_encode(dict(metadata)))
    if length > MAX_METADATA_CHARS:
        raise ValueError(f"memory metadata has {length} characters, {MAX_METADATA_CHARS} at most")
    return dict(metadata)


def write_record_path(path: str) -> str:
    return path + _WRITE_SUFFIX


def operation_path(id: str) -> str:
    return f"{OPERATIONS}{hashlib.sha256(id.encode()).hexdigest()}.json"


def put_record(path: str, record: WriteRecord | OperationRecord) -> PutFile:
    """The change that stores a record; that of an operation must not exist."""
    condition = "*" if isinstance(record, OperationRecord) else None
    content = _encode(asdict(record))
    return PutFile(path=path, content=content, content_type=_JSON, if_none_match=condition)


def write_record_of(row: FileRow | None) -> WriteRecord | None:
    """None if there is none, or if a person has made it unreadable."""
    document = _document(row)
    try:
        return None if document is None else WriteRecord(**document)
    except TypeError:
        return None


def operation_record_of(row: FileRow) -> OperationRecord | None:
    document = _document(row)
    try:
        return None if document is None else OperationRecord(**document)
    except TypeError:
        return None


def _document(row: FileRow | None) -> dict[str, Any] | None:
    if not isinstance(row, File):
        return None
    try:
        document = json.loads(row.content)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
