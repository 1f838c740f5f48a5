"""Comparisons of agents, layers, runs and versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from carrel_client.drivers import Steps
from carrel_client.models import Model, model_field, model_from_json, model_list_field
from carrel_client.requests import api_path, get_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide(Model):
    reference: str
    kind: str
    """agent, template, defaults, workspace or run."""
    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFile(Model):
    path: str
    version: int
    source: str
    """The layer that it comes from."""
    size: int
    sha256: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPath(Model):
    path: str
    status: str
    """same, changed, only-left, only-right, or unknown if the versions were pruned."""
    left: ComparedFile | None = model_field(ComparedFile)
    right: ComparedFile | None = model_field(ComparedFile)
    diff: str | None
    """The unified diff; None if not requested, or if a file is too large for one."""
    diff_truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCounts(Model):
    """Paths of each status on all pages."""

    same: int
    changed: int
    only_left: int
    only_right: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Model):
    """A page of a comparison."""

    left: ComparedSide = model_field(ComparedSide)
    right: ComparedSide = model_field(ComparedSide)
    counts: ComparisonCounts = model_field(ComparisonCounts)
    items: tuple[ComparedPath, ...] = model_list_field(ComparedPath)
    next: str | None
    """Cursor of the next page."""


def comparison_query(
    left: str, right: str, statuses: Collection[str], *, raw: bool, diff: bool
) -> dict[str, str]:
    query = {"left": left, "right": right}
    query |= {"status": ",".join(statuses)} if statuses else {}
    return query | {"raw": str(raw).lower(), "diff": str(diff).lower()}


def compare(query: Mapping[str, str]) -> Steps[Comparison]:
    return model_from_json(Comparison, (yield from get_json(api_path("compare"), query)))
