"""Counts of the agents that a caller may open, and of their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import list_agents_of_person
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.private_access import opens_every_agent
from carrel.core.agents.template import template_from_record
from carrel.core.fleet.pin_groups import (
    FleetCounts,
    PinGroup,
    count_agents,
    group_pins,
    offered_paths,
    upstream_scopes,
)
from carrel.core.fleet.tallies import (
    AgentGroup,
    TallyKind,
    agent_group_from_tally,
    file_group_from_tally,
)
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports

_BATCH_SIZE: Final = 500
"""Agents whose own files are read together."""


class Fleet(Struct, frozen=True):
    """Agents that a caller may open, and the layers below them."""

    counts: FleetCounts
    trees: Mapping[Scope, Tree]
    classes: FileClassRules
    pins: Mapping[PinGroup, int]

    @property
    def agent_count(self) -> int:
        return sum(self.counts.agents.values())


async def load_fleet(ports: Ports, actor: Actor, *, mine: bool = False) -> Fleet:
    """Count the agents that the caller may open, or only those of the caller.

    Shared agents, and all where the caller may open every agent, are counted from tallies, so the
    cost does not depend on their number. A member's private agents are read one by one.
    """
    tenant, opens_all = actor.tenant, opens_every_agent(actor)
    own = [] if opens_all and not mine else await list_agents_of_person(ports, actor)
    if not mine:
        own = [agent for agent in own if not agent_from_record(agent).is_shared]
    groups = Counter[AgentGroup]()
    for tally in () if mine else await ports.tallies.since(tenant, TallyKind.AGENTS):
        group = agent_group_from_tally(tally)
        if opens_all or group.is_shared:
            groups[group] += tally.value
    classes = (await load_rules(ports, tenant)).policy.classes
    scopes = upstream_scopes(tenant, [*groups, *map(group_of, own)])
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    paths = offered_paths(trees)
    counts = await _read_counts(ports, tenant, groups, paths)
    counts += await _count_one_by_one(ports, own, paths)
    return Fleet(counts, trees, classes, group_pins(counts, tenant, trees, classes))


def group_of(agent: Record) -> AgentGroup:
    fields = agent_from_record(agent)
    return AgentGroup(fields.template_id, fields.pins, fields.is_shared)


async def _read_counts(
    ports: Ports, tenant: str, groups: Mapping[AgentGroup, int], paths: Sequence[Path]
) -> FleetCounts:
    if not groups:
        return FleetCounts({}, {})
    names = [path.text for path in paths]
    tallies = await ports.tallies.of_names(tenant, TallyKind.FILES, names)
    files = {file_group_from_tally(tally): tally.value for tally in tallies}
    return FleetCounts(groups, {file: n for file, n in files.items() if file.agents in groups})


async def _count_one_by_one(
    ports: Ports, agents: Sequence[Record], paths: Sequence[Path]
) -> FleetCounts:
    counts = FleetCounts({}, {})
    for start in range(0, len(agents), _BATCH_SIZE):
        batch = agents[start : start + _BATCH_SIZE]
        scopes = [Scope(agent.tenant, ScopeKind.AGENT, agent.id) for agent in batch]
        trees = await ports.trees.read(scopes, paths)
        counts += count_agents(zip(map(group_of, batch), trees, strict=True))
    return counts


async def load_template_names(
    ports: Ports, tenant: str, ids: Iterable[str | None]
) -> Mapping[str, str]:
    template_ids = sorted({id for id in ids if id})
    records = (
        await ports.records.get(tenant, RecordType.TEMPLATE, template_ids) if template_ids else ()
    )
    return {record.id: template_from_record(record).name for record in records if record}
