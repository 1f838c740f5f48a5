"""Search over files, memories and transcripts, and the inbox of reviews."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.approvals import Approval
from carrel_client.drivers import Steps
from carrel_client.models import Model, model_from_json, model_list_field
from carrel_client.requests import api_path, get_json


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
    latest_sha256: str
    newly_offered: bool
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
class Inbox(Model):
    """Pending reviews and approvals: at most 500 of each kind, and all counts."""

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
