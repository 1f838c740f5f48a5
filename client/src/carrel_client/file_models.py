"""Files as the API describes them, with their content or without."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.errors import InvalidResponse
from carrel_client.models import Model, model_list_field, parse_time, wire_name


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file without its content."""

    path: str
    content_type: str
    version: int
    etag: str
    updated_at: datetime
    source: str
    """The layer that it comes from: agent-override, template, defaults and so on."""
    file_class: str
    """live, pinned or managed."""
    sha256: str
    """Digest of the stored bytes."""
    rendered_sha256: str | None
    """Digest of the rendered content, if in the response."""
    size: int | None
    """Bytes that are stored."""
    file_id: str | None
    """Stays the same when the file is moved."""
    update_available: bool
    """Whether the lower layers have changed since this content was written."""
    upstream: str | None = None
    """``template`` or ``defaults``: the layer below an agent that has the path."""
    overrides: bool = False
    """Whether it is the agent's own file in the place of an inherited or reviewed one."""
    error: str | None = None
    """Reason why the content is not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File(FileRow):
    """A file with its content."""

    content: str
    """Text, or base64 if ``encoding`` says so."""
    encoding: str | None = None
    """``base64`` if the content is not UTF-8 text."""

    @property
    def data(self) -> bytes:
        """The bytes of the content."""
        return self.content.encode() if self.encoding is None else b64decode(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile(Model):
    """A file of a skill."""

    path: str
    """Relative to the folder of the skill."""
    version: int
    source: str
    file_class: str = wire_name("class")
    sha256: str
    size: int
    update_available: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill(Model):
    """A folder ``skills/NAME``; one that is invalid is not offered to agents."""

    name: str
    description: str
    valid: bool
    problems: tuple[str, ...]
    digest: str
    """SHA-256 over the paths and digests of its files."""
    files: tuple[SkillFile, ...] = model_list_field(SkillFile)


def row_from_json(row: Any) -> FileRow:
    """Return a File if there is content, else a FileRow. Raises InvalidResponse."""
    try:
        if "content" in row:
            return _file(row)
        return FileRow(
            path=row["path"],
            content_type=row["contentType"],
            version=row["version"],
            etag=row["etag"],
            updated_at=parse_time(row["updatedAt"]),
            source=row["source"],
            file_class=row["class"],
            sha256=row["sha256"],
            rendered_sha256=row.get("renderedSha256"),
            size=row.get("size"),
            file_id=row.get("fileId"),
            update_available=row["updateAvailable"],
            upstream=row.get("upstream"),
            overrides=row.get("overrides", False),
            error=row.get("error"),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidResponse("the response is not a file") from None


def _file(row: Any) -> File:
    return File(
        path=row["path"],
        content_type=row["contentType"],
        version=row["version"],
        etag=row["etag"],
        updated_at=parse_time(row["updatedAt"]),
        source=row["source"],
        file_class=row["class"],
        sha256=row["sha256"],
        rendered_sha256=row.get("renderedSha256"),
        size=row.get("size"),
        file_id=row.get("fileId"),
        update_available=row["updateAvailable"],
        upstream=row.get("upstream"),
        overrides=row.get("overrides", False),
        error=row.get("error"),
        content=_checked_content(row),
        encoding=row.get("encoding"),
    )


def content_of(row: Mapping[str, Any]) -> bytes:
    """Bytes of a row with content. Raises ValueError, TypeError or KeyError."""
    if row.get("encoding") == "base64":
        return b64decode(row["content"], validate=True)
    content: bytes = row["content"].encode()
    return content


def _checked_content(row: Mapping[str, Any]) -> str:
    if row.get("encoding") is not None:
        content_of(row)
    content: str = row["content"]
    return content


def file_from_json(row: Any) -> File:
    """Raises InvalidResponse."""
    try:
        return _file(row)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidResponse("the response is not a file with its content") from None


def rows_from_json(listing: Any) -> tuple[FileRow, ...]:
    """Raises InvalidResponse."""
    rows = listing.get("files") if isinstance(listing, dict) else None
    if not isinstance(rows, list):
        raise InvalidResponse("the response is not a listing of files")
    return tuple(map(row_from_json, rows))
