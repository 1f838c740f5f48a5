"""Files as the server tells of them, with their content or without."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel.client.errors import InvalidResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file without its content."""

    path: str
    content_type: str
    version: int
    etag: str
    updated_at: datetime
    source: str
    """Where it comes from: agent-override, template, defaults and so on."""
    file_class: str
    """live, pinned or managed."""
    sha256: str
    """Of the bytes as they are stored."""
    rendered_sha256: str | None
    """Of what is served, where the server said."""
    update_available: bool
    error: str | None = None
    """Why its content cannot be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File(FileRow):
    content: str


def file_of(row: Any) -> FileRow:
    """A File where the answer holds content, else a FileRow. Raises Garbled."""
    try:
        facts = {
            "path": row["path"],
            "content_type": row["contentType"],
            "version": row["version"],
            "etag": row["etag"],
            "updated_at": datetime.fromisoformat(row["updatedAt"]),
            "source": row["source"],
            "file_class": row["class"],
            "sha256": row["sha256"],
            "rendered_sha256": row.get("renderedSha256"),
            "update_available": row["updateAvailable"],
            "error": row.get("error"),
        }
        return File(**facts, content=row["content"]) if "content" in row else FileRow(**facts)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidResponse("the answer is no file") from None


def file_from_json(row: Any) -> File:
    found = file_of(row)
    if not isinstance(found, File):
        raise InvalidResponse("the answer is a file without its content")
    return found


def rows_of(listing: Any) -> tuple[FileRow, ...]:
    rows = listing.get("files") if isinstance(listing, dict) else None
    if not isinstance(rows, list):
        raise InvalidResponse("the answer is no listing of files")
    return tuple(map(file_of, rows))
