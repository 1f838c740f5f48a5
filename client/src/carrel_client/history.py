"""Versions of a file, and the entry of every layer at a path."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.errors import InvalidResponse
from carrel_client.models import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSource:
    """Version that was moved or copied."""

    kind: str
    """move or copy."""
    path: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    version: int
    path: str
    """Path that the file had."""
    file_id: str | None
    """Stays the same when the file is moved; None for a deletion."""
    source: VersionSource | None
    """What was moved or copied here with this version."""
    layer: str
    """Kind of the layer that has this version: `agent`, `template`, `defaults` …"""
    updated_at: datetime
    author: str
    reason: str
    run_id: str | None
    """Id of the run that wrote the version."""
    deleted: bool
    redacted: bool
    """Whether its content was removed; it cannot be read."""
    size: int | None
    sha256: str | None
    content_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEntry:
    """A layer's entry at a path; without a version if the layer has none."""

    kind: str
    name: str
    version: int | None
    sha256: str | None
    """Digest of the content, None if there is none."""
    base_sha256: str | None
    """Digest of the lower layers' content when written or last reviewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    path: str
    layers: tuple[LayerEntry, ...]
    source: str | None
    """The layer whose content is served, None if there is none."""
    reason: str
    """Why that layer wins."""


def versions_from_json(page: Any) -> tuple[Version, ...]:
    """Raises InvalidResponse."""
    try:
        return tuple(_version(row) for row in page["items"])
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse("the response is not a history") from None


def _version(row: Any) -> Version:
    source = row["source"]
    return Version(
        version=row["version"],
        path=row["path"],
        file_id=row["fileId"],
        source=None
        if source is None
        else VersionSource(kind=source["kind"], path=source["path"], version=source["version"]),
        layer=row["layer"],
        updated_at=parse_time(row["updatedAt"]),
        author=row["author"],
        reason=row["reason"],
        run_id=row["runId"],
        deleted=row["deleted"],
        redacted=row.get("redacted", False),
        size=row["size"],
        sha256=row["sha256"],
        content_type=row["contentType"],
    )


def explanation_from_json(row: Any) -> Explanation:
    """Raises InvalidResponse."""
    try:
        layers = tuple(_layer(layer) for layer in row["layers"])
        return Explanation(path=row["path"], layers=layers, source=row["source"], reason=row["why"])
    except (KeyError, TypeError):
        raise InvalidResponse("the response is not an explanation") from None


def _layer(row: Any) -> LayerEntry:
    values = {name: row[name] for name in ("kind", "name", "version", "sha256")}
    return LayerEntry(**values, base_sha256=row["baseSha256"])
