"""All agents that follow a template, under one review: what each was held to, and what becomes."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.commands.pins import offer
from carrel.cli.console import progress_bars

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Pin

_AT_ONCE: Final = 8
_NAMED: Final = 5
"""Agents that are named of those to whom the same is shown."""


@dataclass(frozen=True, slots=True)
class TemplateFollowers:
    """What is offered to whom."""

    pins: Mapping[str, Pin]
    """By the agent's slug; of those that have nothing newer to accept there is none."""

    @property
    def offered(self) -> set[str]:
        return {pin.latest_sha256 for pin in self.pins.values() if pin.latest_sha256}

    @property
    def waiting(self) -> int:
        return len(self.pins)

    def show(self) -> None:
        """One difference for all who were held to the same."""
        alike: dict[str | None, list[str]] = {}
        for slug, pin in self.pins.items():
            alike.setdefault(pin.pinned_sha256, []).append(slug)
        for slugs in alike.values():
            click.echo(_named(slugs), err=True)
            formatting.diff(offer(self.pins[slugs[0]]))
        overridden = [slug for slug, pin in self.pins.items() if pin.overridden]
        if overridden:
            click.echo(f"Accepting it drops the overrides of {_named(overridden)}", err=True)


def _named(slugs: Sequence[str]) -> str:
    more = len(slugs) - _NAMED
    return ", ".join(slugs[:_NAMED]) + (f" and {more} more" if more > 0 else "") + ":"


async def _following(desk: AsyncClient, template: str) -> dict[str, str]:
    """The slugs of all agents that follow it, by id. Raises NotFound."""
    id = (await desk.templates.get(template)).id
    return {row.id: row.slug for row in await desk.agents.list() if row.template_id == id}


async def followers_of(desk: AsyncClient, template: str, path: str) -> TemplateFollowers:
    """Look at every agent that follows, a few at a time."""
    slugs = await _following(desk, template)
    found: dict[str, Pin] = {}
    gate, done = asyncio.Semaphore(_AT_ONCE), 0
    with progress_bars() as watch:

        async def look(id: str, slug: str) -> None:
            nonlocal done
            async with gate:
                pins = await desk.agent(id).pins()
            for one in pins:
                if one.path == path and one.update_available:
                    found[slug] = one
            done += 1
            watch("looking at agents", done, len(slugs))

        await asyncio.gather(*(look(id, slug) for id, slug in slugs.items()))
    return TemplateFollowers(dict(sorted(found.items())))


async def accept_for_all(
    desk: AsyncClient, template: str, path: str, digest: str
) -> list[dict[str, Any]]:
    """What became of each, by its slug; the server does it for all in one request."""
    slugs = await _following(desk, template)
    results = await desk.template(template).accept(path, digest)
    rows = []
    for one in results:
        facts = dataclasses.asdict(one)
        facts["agentId"] = facts.pop("agent")
        rows.append({"agent": slugs.get(one.agent, one.agent), **facts})
    return sorted(rows, key=lambda row: str(row["agent"]))
