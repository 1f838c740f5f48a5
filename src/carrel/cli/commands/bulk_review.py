"""Review of one pinned file for all agents that follow a template."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.commands.pins import offer_diff
from carrel.cli.console import progress_bars

if TYPE_CHECKING:
    from carrel_client import AsyncClient, BulkAcceptOutcome, BulkReview, Pin

_MAX_CONCURRENT: Final = 8
_MAX_NAMES: Final = 5
"""Agents listed by name in front of a diff."""


@dataclass(frozen=True, slots=True)
class TemplateFollowers:
    """Pins of a template's followers with an update available."""

    pins: Mapping[str, Pin]
    """By agent slug; only agents with an update available."""

    @property
    def offered_digests(self) -> set[str | None]:
        return {pin.latest_sha256 for pin in self.pins.values()}

    @property
    def pending_count(self) -> int:
        return len(self.pins)

    def show(self) -> None:
        """Print one diff for each group of agents with the same accepted version."""
        slugs_by_digest: dict[str | None, list[str]] = {}
        for slug, pin in self.pins.items():
            slugs_by_digest.setdefault(pin.pinned_sha256, []).append(slug)
        for slugs in slugs_by_digest.values():
            click.echo(_join_names(slugs), err=True)
            formatting.print_diff(offer_diff(self.pins[slugs[0]]))
        overridden = [slug for slug, pin in self.pins.items() if pin.overridden]
        if overridden:
            click.echo(f"Accepting removes the overrides of {_join_names(overridden)}", err=True)


def _join_names(slugs: Sequence[str]) -> str:
    remaining = len(slugs) - _MAX_NAMES
    return ", ".join(slugs[:_MAX_NAMES]) + (f" and {remaining} more" if remaining > 0 else "") + ":"


async def _list_followers(client: AsyncClient, template: str | None) -> dict[str, str]:
    """Return the slugs of a template's followers by id; of all agents without a template.

    Raises NotFound.
    """
    if template is None:
        return {row.id: row.slug for row in await client.agents.list()}
    id = (await client.templates.get(template)).id
    return {row.id: row.slug for row in await client.agents.list() if row.template_id == id}


async def load_followers(client: AsyncClient, template: str | None, path: str) -> TemplateFollowers:
    """Load the pins of all followers, a few concurrently."""
    slugs = await _list_followers(client, template)
    pins_by_slug: dict[str, Pin] = {}
    semaphore, done = asyncio.Semaphore(_MAX_CONCURRENT), 0
    with progress_bars() as on_progress:

        async def load_pin(id: str, slug: str) -> None:
            nonlocal done
            async with semaphore:
                pins = await client.agent(id).pins()
            for pin in pins:
                is_offered = template is not None or pin.latest_source in {None, "defaults"}
                if pin.path == path and pin.update_available and is_offered:
                    pins_by_slug[slug] = pin
            done += 1
            on_progress("loading agents", done, len(slugs))

        await asyncio.gather(*(load_pin(id, slug) for id, slug in slugs.items()))
    return TemplateFollowers(dict(sorted(pins_by_slug.items())))


async def accept_for_all(
    client: AsyncClient,
    template: str | None,
    path: str,
    digest: str | None,
    part: Mapping[str, Any],
) -> tuple[BulkReview, list[dict[str, Any]]]:
    """Accept a version for followers in one request; return the review and results by slug."""
    files = client.defaults if template is None else client.template(template)
    review = await files.accept_part(path, digest, **part)
    return review, await review_rows(client, template, review.outcomes)


async def review_rows(
    client: AsyncClient, template: str | None, outcomes: Sequence[BulkAcceptOutcome]
) -> list[dict[str, Any]]:
    """Return the results with the slugs of the agents."""
    return _outcome_rows(outcomes, await _list_followers(client, template))


async def roll_back_for_all(
    client: AsyncClient, template: str | None, path: str, digest: str
) -> list[dict[str, Any]]:
    """Roll back an acceptance for all followers in one request; return the results by slug."""
    slugs = await _list_followers(client, template)
    files = client.defaults if template is None else client.template(template)
    return _outcome_rows(await files.roll_back(path, digest), slugs)


def _outcome_rows(
    results: Sequence[BulkAcceptOutcome], slugs: Mapping[str, str]
) -> list[dict[str, Any]]:
    rows = []
    for result in results:
        facts = dataclasses.asdict(result)
        facts["agentId"] = facts.pop("agent")
        rows.append({"agent": slugs.get(result.agent, result.agent), **facts})
    return sorted(rows, key=lambda row: str(row["agent"]))
