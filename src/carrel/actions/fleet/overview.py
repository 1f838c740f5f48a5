"""Overview of the fleet: what waits, runs, drift, prompts and memories over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import list_agents_of_person
from carrel.actions.fleet.fleet_counts import Fleet, load_fleet, load_template_names
from carrel.actions.fleet.waiting_work import InboxCounts, count_waiting
from carrel.core.access import Actor, Permission
from carrel.core.agents.private_access import opens_every_agent
from carrel.core.errors import Forbidden
from carrel.core.fleet.drift import FileDrift, count_overrides, measure_drift, versions_to_read
from carrel.core.fleet.prompt_sizes import PromptTotals, total_by_day, total_by_template
from carrel.core.fleet.tallies import DAY_MS, HOUR_MS, Tally, TallyKind, day_name, hour_name
from carrel.core.identifiers import Path, TimestampMs
from carrel.core.runs import RunStatus
from carrel.core.store.record import RecordType
from carrel.ports import Ports

RECENT_HOURS: Final = 24
"""Hours of which runs are counted one by one, and in which failed runs need attention."""


class MemoryDay(Struct, frozen=True):
    at: TimestampMs
    total: int
    """Memories at the end of the day, of those that still exist."""
    created: int
    promoted: int


class Overview(Struct, frozen=True):
    agents: int
    waiting: InboxCounts
    failed_runs: int
    """Runs of the last day that failed."""
    runs_by_day: Mapping[TimestampMs, Mapping[str, int]]
    runs_by_hour: Mapping[TimestampMs, Mapping[str, int]]
    drift: Sequence[FileDrift]
    overrides: Mapping[Path, int]
    prompts_by_template: Mapping[str | None, PromptTotals]
    prompts_by_day: Mapping[TimestampMs, PromptTotals]
    memories: Sequence[MemoryDay]
    templates: Mapping[str, str]
    """Names of templates by id."""


class _Counts(Struct, frozen=True):
    """Tallies of the fleet, or of some agents."""

    ports: Ports
    tenant: str
    agents: Sequence[str] | None
    """Ids of the agents to count; None for the whole tenant."""

    async def since(self, kind: TallyKind, name: str = "") -> Sequence[Tally]:
        if self.agents is None:
            return await self.ports.tallies.since(self.tenant, kind, name)
        return await self.ports.tallies.of_agents(self.tenant, kind, self.agents, name)

    async def total_before(self, kind: TallyKind, name: str) -> int:
        if self.agents is None:
            return await self.ports.tallies.total_before(self.tenant, kind, name)
        tallies = await self.ports.tallies.of_agents(self.tenant, kind, self.agents)
        return sum(tally.value for tally in tallies if tally.name < name)


async def load_overview(ports: Ports, actor: Actor, *, days: int, mine: bool = False) -> Overview:
    """Load the overview of the tenant's agents, or of the caller's. Raises Forbidden.

    The number of statements and rows does not depend on the number of agents. Members see what
    waits, drift and overrides of shared agents and their own, and the rest of their own.
    """
    if actor.is_confined:
        raise Forbidden("this credential is confined to one workspace")
    for permission in (Permission.WORKSPACE_READ, Permission.RUNS_READ):
        actor.require(permission)
    is_limited = mine or not opens_every_agent(actor)
    own = [agent.id for agent in await list_agents_of_person(ports, actor)] if is_limited else None
    counts = _Counts(ports, actor.tenant, own)
    now = ports.clock.now()
    start = now // DAY_MS * DAY_MS - (days - 1) * DAY_MS
    hours = _count_by(await counts.since(TallyKind.RUNS, hour_name(start)), HOUR_MS)
    fleet = await load_fleet(ports, actor, mine=mine)
    prompts = await counts.since(TallyKind.PROMPTS, day_name(start))
    by_template = total_by_template(prompts)
    recent = [now // HOUR_MS * HOUR_MS - n * HOUR_MS for n in reversed(range(RECENT_HOURS))]
    by_hour = {hour: hours.get(hour, {}) for hour in recent}
    return Overview(
        fleet.agent_count,
        await _count_waiting(ports, actor, fleet, mine=mine),
        sum(statuses.get(RunStatus.FAILED, 0) for statuses in by_hour.values()),
        _sum_by_day(hours, start, days),
        by_hour,
        await _load_drift(ports, fleet),
        count_overrides(fleet.counts, actor.tenant, fleet.trees, fleet.classes),
        by_template,
        {int(day or 0) * DAY_MS: total for day, total in total_by_day(prompts).items()},
        await _load_memories(counts, start, days),
        await load_template_names(ports, actor.tenant, by_template),
    )


async def _count_waiting(ports: Ports, actor: Actor, fleet: Fleet, *, mine: bool) -> InboxCounts:
    pins = sum(count for group, count in fleet.pins.items() if group.is_waiting)
    approvals = await count_waiting(ports, actor, RecordType.APPROVAL, mine=mine)
    return InboxCounts(
        pins, approvals, await count_waiting(ports, actor, RecordType.DREAM, mine=mine)
    )


async def _load_drift(ports: Ports, fleet: Fleet) -> Sequence[FileDrift]:
    keys = versions_to_read(fleet.pins, fleet.trees)
    versions = dict(zip(keys, await ports.trees.versions(keys), strict=True)) if keys else {}
    return measure_drift(fleet.pins, fleet.trees, versions)


def _count_by(tallies: Sequence[Tally], unit: int) -> Mapping[TimestampMs, Mapping[str, int]]:
    counts = defaultdict[TimestampMs, Counter[str]](Counter)
    for tally in tallies:
        counts[int(tally.name) * unit][tally.key] += tally.value
    return counts


def _sum_by_day(
    hours: Mapping[TimestampMs, Mapping[str, int]], start: TimestampMs, days: int
) -> Mapping[TimestampMs, Mapping[str, int]]:
    result = {start + n * DAY_MS: Counter[str]() for n in range(days)}
    for hour, statuses in hours.items():
        result.setdefault(hour // DAY_MS * DAY_MS, Counter()).update(statuses)
    return result


async def _load_memories(counts: _Counts, start: TimestampMs, days: int) -> Sequence[MemoryDay]:
    name = day_name(start)
    created = _count_by(await counts.since(TallyKind.MEMORIES, name), DAY_MS)
    promoted = _count_by(await counts.since(TallyKind.PROMOTIONS, name), DAY_MS)
    total = await counts.total_before(TallyKind.MEMORIES, name)
    result = []
    for at in (start + n * DAY_MS for n in range(days)):
        new = sum(created.get(at, {}).values())
        total += new
        result.append(MemoryDay(at, total, new, sum(promoted.get(at, {}).values())))
    return result
