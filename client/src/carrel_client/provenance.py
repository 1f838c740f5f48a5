"""What a run was made of and what it wrote: versions, authors, reviews and session entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Steps
from carrel_client.models import (
    Model,
    model_field,
    model_from_json,
    model_list_field,
    wire_name,
)
from carrel_client.requests import api_path, get_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Author(Model):
    """A person, or the key of a service or agent."""

    id: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerVersion(Model):
    """A version of a file in its layer."""

    layer: str
    layer_id: str
    version: int
    author: Author = model_field(Author)
    reason: str
    written_at: datetime
    run_id: str | None
    """The run that wrote it."""
    redacted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReview(Model):
    """How a pinned file was approved, by whom, when and through which key."""

    kind: str
    """recorded, accepted, rolled-back or overridden."""
    by: Author = model_field(Author)
    at: datetime
    reason: str
    key: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenanceFile(Model):
    """A file that a run reads."""

    path: str
    version: int
    sha256: str
    source: str
    file_class: str = wire_name("class")
    in_prompt: bool
    written: LayerVersion | None = model_field(LayerVersion)
    origin: LayerVersion | None = model_field(LayerVersion)
    """The version of the template or defaults that a pin was accepted from."""
    review: FileReview | None = model_field(FileReview)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenanceEntry(Model):
    """A session entry that a run wrote."""

    session_id: str
    number: int
    role: str
    timestamp: datetime
    preview: str
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(Model):
    """A run with its entries, its prompt's blocks and its files."""

    run: Mapping[str, Any] | None
    """None for an entry that no run wrote."""
    entries: tuple[ProvenanceEntry, ...] = model_list_field(ProvenanceEntry)
    more_entries: bool
    prompt: Mapping[str, Any] | None
    files: tuple[ProvenanceFile, ...] = model_list_field(ProvenanceFile)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLineItem(Model):
    """One event or one entry of a run; the other is None."""

    at: datetime
    event: Mapping[str, Any] | None
    entry: ProvenanceEntry | None = model_field(ProvenanceEntry)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLine(Model):
    """A page of what happened in a run, oldest first."""

    items: tuple[TimeLineItem, ...] = model_list_field(TimeLineItem)
    next: str | None
    """Cursor of the next page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionReader(Model):
    """A run that read a version of a file."""

    run_id: str
    workflow_id: str
    agent_id: str | None
    session_id: str | None
    status: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionReaders(Model):
    """A page of the runs that read a version, newest first; it may be short."""

    items: tuple[VersionReader, ...] = model_list_field(VersionReader)
    next: str | None
    """Cursor of the next page."""


def get_time_line(run_id: str, cursor: str, limit: int) -> Steps[TimeLine]:
    """Raises InvalidResponse."""
    query = {"limit": str(limit)} | ({"cursor": cursor} if cursor else {})
    path = api_path("runs", run_id, "timeline")
    return model_from_json(TimeLine, (yield from get_json(path, query)))


def get_provenance(path: str) -> Steps[Provenance]:
    """Raises InvalidResponse."""
    return model_from_json(Provenance, (yield from get_json(path)))
