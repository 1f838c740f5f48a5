"""Pinned files and their review."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from carrel_client.drivers import Driver, Steps, operation
from carrel_client.errors import InvalidResponse, ValidationError
from carrel_client.files import Files
from carrel_client.http_messages import HttpRequest
from carrel_client.models import Model, model_from_json, model_list_field, wire_name
from carrel_client.requests import api_path, get_json, items_of, send_json, send_with_retry
from carrel_client.reviews import (
    BulkAcceptOutcome,
    BulkReview,
    PinnedVersions,
    bulk_review_from_json,
    outcomes_from_json,
    part_to_json,
)


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
    served: str | None = None
    """What the agent is served: its override, else the pinned text."""
    served_sha256: str | None = None
    declined: bool = False
    """Whether the offered change was declined."""


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

    def __init__(self, driver: Driver, *layer: str) -> None:
        super().__init__(driver, *layer)
        self._pins_path = (*layer, "pins")

    @operation
    def impact(self, path: str) -> Steps[EditImpact]:
        """Count the agents that an edit of a file would affect."""
        return model_from_json(EditImpact, (yield from get_json(self._path(path, "impact"))))

    @operation
    def accept(self, path: str, sha256: str | None) -> Steps[tuple[BulkAcceptOutcome, ...]]:
        """Accept a reviewed text for every agent that inherits it; returns an outcome for each.

        None accepts that the file was removed.
        """
        body = {"sha256": sha256}
        return outcomes_from_json((yield from self._review(path, "accept", body)))

    @operation
    def accept_part(
        self,
        path: str,
        sha256: str | None,
        *,
        count: int | None = None,
        share: float | None = None,
        tag: str | None = None,
        agents: Collection[str] | None = None,
    ) -> Steps[BulkReview]:
        """Accept for a number, a percentage, a tag or a list of the agents; for all without one.

        The same number or share chooses the same agents again.
        """
        part = part_to_json(count, share, tag, agents)
        body = {"sha256": sha256, **({"part": part} if part else {})}
        return bulk_review_from_json((yield from self._review(path, "accept", body)))

    @operation
    def decline(self, path: str, sha256: str | None, reason: str) -> Steps[BulkReview]:
        """Decline an offered text for every agent; the next one is offered again."""
        body = {"sha256": sha256, "reason": reason}
        return bulk_review_from_json((yield from self._review(path, "decline", body)))

    @operation
    def roll_back(self, path: str, sha256: str) -> Steps[tuple[BulkAcceptOutcome, ...]]:
        """Roll back what was accepted together; returns an outcome for each agent."""
        body = {"sha256": sha256}
        return outcomes_from_json((yield from self._review(path, "rollback", body)))

    @operation
    def pinned_versions(self, path: str) -> Steps[PinnedVersions]:
        """Count which version of a pinned file the agents have."""
        path = api_path(*self._pins_path, path, "versions")
        return model_from_json(PinnedVersions, (yield from get_json(path)))

    def _review(self, path: str, action: str, body: Mapping[str, Any]) -> Steps[Any]:
        request = HttpRequest("POST", api_path(*self._pins_path, path, action), body=body)
        return (yield from send_with_retry(request)).json()


class TemplateFiles(LayerFiles[Driver]):
    """Files of a template, and bulk accepts for its followers."""

    def __init__(self, driver: Driver, template: str) -> None:
        super().__init__(driver, "templates", template)
        self._template = template

    def _event_scopes(self) -> Steps[frozenset[tuple[str, str]]]:
        record = yield from get_json(api_path("templates", self._template))
        return frozenset({("template", str(record["id"]))})


class DefaultFiles(LayerFiles[Driver]):
    """Default files of the tenant."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver, "defaults")

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
            served=row.get("servedContent"),
            served_sha256=row.get("servedSha256"),
            declined=row.get("declined", False),
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the response is not a pin") from None


def pins_from_json(page: Any) -> tuple[Pin, ...]:
    return tuple(map(pin_from_json, items_of(page)))
