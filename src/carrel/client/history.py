"""What became of a file, as the server tells of it: its versions, and what each layer says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel.client.errors import InvalidResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    version: int
    updated_at: datetime
    author: str
    reason: str
    run: str | None
    """The run that wrote it."""
    deleted: bool
    size: int | None
    sha256: str | None
    content_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEntry:
    """One layer's say about a path; no version where it never said anything."""

    kind: str
    name: str
    version: int | None
    sha256: str | None
    """Of its content, None where it has none."""
    base_sha256: str | None
    """Of what lay beneath when that was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    path: str
    layers: tuple[LayerEntry, ...]
    source: str | None
    """Where what is served comes from, None where nothing is."""
    why: str


def versions_of(told: Any) -> tuple[Version, ...]:
    """Raises Garbled."""
    try:
        return tuple(_version(row) for row in told["items"])
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse("the answer is no history") from None


def _version(row: Any) -> Version:
    return Version(
        version=row["version"],
        updated_at=datetime.fromisoformat(row["updatedAt"]),
        author=row["author"],
        reason=row["reason"],
        run=row["runId"],
        deleted=row["deleted"],
        size=row["size"],
        sha256=row["sha256"],
        content_type=row["contentType"],
    )


def explanation_of(told: Any) -> Explanation:
    """Raises Garbled."""
    try:
        layers = tuple(_said(row) for row in told["layers"])
        facts = {name: told[name] for name in ("path", "source", "why")}
    except (KeyError, TypeError):
        raise InvalidResponse("the answer is no explanation") from None
    return Explanation(layers=layers, **facts)


def _said(row: Any) -> LayerEntry:
    known = {name: row[name] for name in ("kind", "name", "version", "sha256")}
    return LayerEntry(**known, base_sha256=row["baseSha256"])
