"""Search over files, memories and transcripts, and the inbox of reviews."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.approvals import Approval
from carrel_client.drivers import Steps
from carrel_client.models import Model, model_from_json, model_list_field, models_from_json
from carrel_client.requests import api_path, drop_none, get_json, list_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit(Model):
    kind: str
    """file, memory or session."""
    title: str
    scope: str
    """agent, template, defaults or workspace."""
    snippet: str
    at: datetime
    path: str | None = None
    agent_id: str | None = None
    template_id: str | None = None
    workspace_id: str | None = None
    session_id: str | None = None
    memory_id: str | None = None
    entry: int | None = None
    scope_name: str | None = None
    """Name of the agent, template or workspace; None for the defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult(Model):
    items: tuple[SearchHit, ...] = model_list_field(SearchHit)
    """The hits, best first."""
    complete: bool
    """False if the search stopped at its limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPin(Model):
    """An update of a pinned file that waits for a review."""

    agent_id: str
    agent_name: str
    agent_slug: str
    template_id: str | None
    template_name: str | None
    path: str
    pinned_sha256: str | None
    latest_sha256: str | None
    """None if the file was removed."""
    newly_offered: bool
    overridden: bool
    """Whether an accept would drop the agent's own override."""
    mine: bool
    """Whether the caller is the agent's person or owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDream(Model):
    """A dream that waits for a review."""

    agent_id: str
    agent_name: str
    dream_id: str
    at: datetime
    promoted: int
    mine: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGroup(Model):
    """One update of a pinned file, and for how many agents it waits."""

    path: str
    template_id: str | None
    """Template that the update comes from; None for the defaults."""
    template_name: str | None
    latest_sha256: str | None
    """None if the file was removed."""
    count: int
    overridden: int
    """Agents whose own override an accept would drop."""
    newly_offered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePins(Model):
    """Waiting updates of the agents of one template, wherever they come from."""

    template_id: str | None
    pins: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox(Model):
    """Groups and counts of all that waits, and the first of each kind."""

    groups: tuple[PendingGroup, ...] = model_list_field(PendingGroup)
    templates: tuple[TemplatePins, ...] = model_list_field(TemplatePins)
    pins: tuple[PendingPin, ...] = model_list_field(PendingPin)
    approvals: tuple[Approval, ...] = model_list_field(Approval)
    dreams: tuple[PendingDream, ...] = model_list_field(PendingDream)
    counts: Mapping[str, int]


def search(
    query: str, kinds: Collection[str], limit: int, scope: str | None
) -> Steps[SearchResult]:
    parameters = {"q": query, "limit": str(limit), **({"scope": scope} if scope else {})}
    parameters |= {"kinds": ",".join(kinds)} if kinds else {}
    return model_from_json(SearchResult, (yield from get_json(api_path("search"), parameters)))


def get_inbox(mine: bool) -> Steps[Inbox]:
    query: dict[str, Any] = {"mine": "true"} if mine else {}
    return model_from_json(Inbox, (yield from get_json(api_path("inbox"), query)))


def list_inbox_pins(
    path: str | None, offered_by: str | None, overridden: bool, mine: bool
) -> Steps[tuple[PendingPin, ...]]:
    query = drop_none({"path": path, "offeredBy": offered_by})
    query |= {"overridden": "true"} if overridden else {}
    query |= {"mine": "true"} if mine else {}
    return models_from_json(PendingPin, (yield from list_pages(api_path("inbox", "pins"), query)))


def list_inbox_dreams(mine: bool) -> Steps[tuple[PendingDream, ...]]:
    query = {"mine": "true"} if mine else {}
    rows = yield from list_pages(api_path("inbox", "dreams"), query)
    return models_from_json(PendingDream, rows)
