"""Pinned files and their review."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from carrel_client.drivers import Driver, Steps, operation
from carrel_client.errors import InvalidResponse, ValidationError
from carrel_client.files import Files
from carrel_client.http_messages import HttpRequest
from carrel_client.models import Model, model_from_json, model_list_field, wire_name
from carrel_client.requests import api_path, get_json, items_of, send_json, send_with_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The review status of one pinned file of an agent."""

    path: str
    pinned_sha256: str | None
    """Digest of the reviewed content."""
    latest_sha256: str | None
    """Digest of the content in the lower layers."""
    update_available: bool
    overridden: bool
    version: int
    pinned: str | None = None
    latest: str | None = None
    latest_source: str | None = None
    """Layer that offers the latest text: `template` or `defaults`."""
    error: str | None = None
    """Why one of the contents is not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAcceptOutcome:
    """Outcome of a bulk accept or roll back for one agent."""

    agent: str
    """Id of the agent."""
    success: bool
    changed: bool
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditImpact(Model):
    """Number of agents that an edit of a layer's file affects."""

    path: str
    file_class: str = wire_name("class")
    followers: int
    """Agents whose stack contains the layer; the sum of the next three fields."""
    changes: int
    """Agents that would be served the new text at once."""
    pending_reviews: int = wire_name("asked")
    """Agents for which the edit would await review."""
    shadowed: int
    """Agents for which a nearer layer overrides the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultFile(Model):
    path: str
    state: str
    """current, new, behind, edited, deleted or retired."""
    offered: bool
    """Whether a newer packaged version can be taken or declined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultsStatus(Model):
    """The tenant's default files compared with the packaged ones."""

    packaged: int
    """The packaged version."""
    seeded: int
    """Packaged version merged last; 0 if none."""
    files: tuple[DefaultFile, ...] = model_list_field(DefaultFile)


class LayerFiles(Files[Driver]):
    """Files of a layer that agents share: a template or the defaults."""

    @operation
    def impact(self, path: str) -> Steps[EditImpact]:
        """Count the agents that an edit of a file would affect."""
        return model_from_json(EditImpact, (yield from get_json(self._path(path, "impact"))))


class TemplateFiles(LayerFiles[Driver]):
    """Files of a template, and bulk accepts for its followers."""

    def __init__(self, driver: Driver, template: str) -> None:
        super().__init__(driver, "templates", template)
        self._template = template

    @operation
    def accept(self, path: str, sha256: str) -> Steps[tuple[BulkAcceptOutcome, ...]]:
        """Accept a reviewed text for every follower; returns an outcome per agent."""
        path = api_path("templates", self._template, "pins", path, "accept")
        request = HttpRequest("POST", path, body={"sha256": sha256})
        return _outcomes((yield from send_with_retry(request)).json())

    @operation
    def roll_back(self, path: str, sha256: str) -> Steps[tuple[BulkAcceptOutcome, ...]]:
        """Roll back what was accepted for every follower; returns an outcome per agent."""
        path = api_path("templates", self._template, "pins", path, "rollback")
        request = HttpRequest("POST", path, body={"sha256": sha256})
        return _outcomes((yield from send_with_retry(request)).json())

    def _event_scopes(self) -> Steps[frozenset[tuple[str, str]]]:
        record = yield from get_json(api_path("templates", self._template))
        return frozenset({("template", str(record["id"]))})


class DefaultFiles(LayerFiles[Driver]):
    """Default files of the tenant."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver, "defaults")

    @operation
    def accept(self, path: str, sha256: str) -> Steps[tuple[BulkAcceptOutcome, ...]]:
        """Accept a reviewed default for every agent that inherits it; an outcome per agent."""
        request = HttpRequest(
            "POST", api_path("defaults", "pins", path, "accept"), body={"sha256": sha256}
        )
        return _outcomes((yield from send_with_retry(request)).json())

    @operation
    def roll_back(self, path: str, sha256: str) -> Steps[tuple[BulkAcceptOutcome, ...]]:
        """Roll back what was accepted for all that inherit it; an outcome per agent."""
        request = HttpRequest(
            "POST", api_path("defaults", "pins", path, "rollback"), body={"sha256": sha256}
        )
        return _outcomes((yield from send_with_retry(request)).json())

    @operation
    def status(self) -> Steps[DefaultsStatus]:
        """Compare the files with the packaged ones."""
        return model_from_json(DefaultsStatus, (yield from get_json(api_path("defaults"))))

    @operation
    def update(
        self,
        take: Collection[str] = (),
        keep: Collection[str] = (),
        *,
        idempotency_key: str | None = None,
    ) -> Steps[DefaultsStatus]:
        """Update unedited files; take or keep the offered ones that are named.

        Returns the status afterwards.
        """
        if isinstance(take, str) or isinstance(keep, str):
            raise ValidationError("take and keep are lists of paths")
        path, body = api_path("defaults", "update"), {"take": list(take), "keep": list(keep)}
        status = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return model_from_json(DefaultsStatus, status)


def pin_from_json(row: Any) -> Pin:
    """Raises InvalidResponse."""
    try:
        return Pin(
            path=row["path"],
            pinned_sha256=row["pinnedSha256"],
            latest_sha256=row["latestSha256"],
            update_available=row["updateAvailable"],
            overridden=row["overridden"],
            version=row["version"],
            pinned=row.get("pinnedContent"),
            latest=row.get("latestContent"),
            latest_source=row.get("latestSource"),
            error=row.get("error"),
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the response is not a pin") from None


def pins_from_json(page: Any) -> tuple[Pin, ...]:
    return tuple(map(pin_from_json, items_of(page)))


def _outcomes(body: Any) -> tuple[BulkAcceptOutcome, ...]:
    try:
        return tuple(
            BulkAcceptOutcome(
                agent=row["agentId"],
                success=row["success"],
                changed=row["changed"],
                error=row["error"],
            )
            for row in body["results"]
        )
    except (KeyError, TypeError):
        raise InvalidResponse("the response has no outcome for each agent") from None
