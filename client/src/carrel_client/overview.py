"""Overview of the agents: what waits, runs, drift, prompts and memories in counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from carrel_client.drivers import Steps
from carrel_client.models import Model, model_field, model_from_json, model_list_field
from carrel_client.requests import api_path, get_json


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCounts(Model):
    """What waits for a person."""

    pins: int
    approvals: int
    dreams: int
    failed_runs: int
    """Runs of the last 24 hours that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts(Model):
    """Runs that started in one hour or day, by their status now."""

    at: datetime
    running: int
    completed: int
    failed: int
    cancelled: int
    abandoned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsBehind(Model):
    versions: int
    agents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDrift(Model):
    """Agents by how far their pin of one file is behind what is offered."""

    path: str
    up_to_date: int
    behind: tuple[VersionsBehind, ...] = model_list_field(VersionsBehind)
    older: int
    not_reviewed: int
    overridden: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOverrides(Model):
    path: str
    agents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSize(Model):
    name: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePrompts(Model):
    """Average prompt of the runs of one template's agents."""

    template_id: str | None
    template_name: str | None
    runs: int
    tokens: int
    stable_tokens: int
    """Tokens before the first block that changes between runs."""
    blocks: tuple[BlockSize, ...] = model_list_field(BlockSize)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPrompts(Model):
    """Average prompt of the runs of one day."""

    at: datetime
    runs: int
    tokens: int
    stable_tokens: int
    blocks: tuple[BlockSize, ...] = model_list_field(BlockSize)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSizes(Model):
    by_template: tuple[TemplatePrompts, ...] = model_list_field(TemplatePrompts)
    by_day: tuple[DayPrompts, ...] = model_list_field(DayPrompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDay(Model):
    at: datetime
    total: int
    created: int
    promoted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview(Model):
    agents: int
    waiting: WaitingCounts | None = model_field(WaitingCounts)
    runs_by_day: tuple[RunCounts, ...] = model_list_field(RunCounts)
    runs_by_hour: tuple[RunCounts, ...] = model_list_field(RunCounts)
    drift: tuple[FileDrift, ...] = model_list_field(FileDrift)
    overrides: tuple[FileOverrides, ...] = model_list_field(FileOverrides)
    prompts: PromptSizes | None = model_field(PromptSizes)
    memories: tuple[MemoryDay, ...] = model_list_field(MemoryDay)


def get_overview(days: int, mine: bool) -> Steps[Overview]:
    query = {"days": str(days), **({"mine": "true"} if mine else {})}
    return model_from_json(Overview, (yield from get_json(api_path("overview"), query)))
