"""Changes of many agents: each is that of one agent, and a refusal stops no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.agents import agents as single
from carrel.actions.agents.agent_plans import (
    CHANGE_REASON,
    AgentPlan,
    AgentUpdate,
    plan_changes,
    updated_agent,
)
from carrel.actions.agents.change_effects import ChangeEffects, compare_files, count_erased
from carrel.actions.agents.overview import AgentFilter, find_agents
from carrel.actions.dry_runs.dry_run_ports import dry_run_ports
from carrel.actions.dry_runs.pending_changes import PendingChanges
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import commit_each
from carrel.actions.retry import MAX_ATTEMPTS
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.private_access import require_full_access
from carrel.core.errors import Busy, NotFound, Refusal, ValidationError
from carrel.core.store.record import Record, RecordType, unique_key
from carrel.ports import Ports

MAX_SELECTED: Final = 5_000
"""Agents of one request."""
_BATCH_SIZE: Final = 500
"""Agents per transaction and per query."""


class AgentSelection(Struct, frozen=True):
    """Agents by id or slug, or else those that meet the filter of the list."""

    names: Sequence[str] = ()
    filter: AgentFilter | None = None


class BulkChange(Struct, frozen=True):
    """Change of each selected agent."""

    fields: Mapping[str, Any] = {}
    """Template and human, as the change of one agent takes them."""
    add_tags: Sequence[str] = ()
    remove_tags: Sequence[str] = ()
    is_deletion: bool = False


class AgentOutcome(Struct, frozen=True):
    """Outcome for one agent."""

    agent: str
    """Id, or the name that was not found."""
    slug: str = ""
    name: str = ""
    changed: bool = False
    problem: Refusal | None = None
    effects: ChangeEffects = ChangeEffects()
    """Of a dry run; empty otherwise."""


async def change_agents(
    ports: Ports,
    actor: Actor,
    selection: AgentSelection,
    change: BulkChange,
    *,
    dry_run: bool = False,
) -> tuple[AgentOutcome, ...]:
    """Change every selected agent; return one outcome each, in the order of the selection.

    A dry run stores nothing and returns the effects. Reads and commits 500 agents at a time;
    deletions erase one agent after the other. Repeating it changes nothing more. Raises NotFound
    for an unknown template or person, ValidationError for too many agents.
    """
    if dry_run:
        ports = dry_run_ports(ports, PendingChanges())
    rules = await load_rules(ports, actor.tenant)
    change = rules.redact_fields(change)
    await single.resolve_references(ports, actor, change.fields)
    selected = await _select(ports, actor, selection)
    agents = list({item.id: item for item in selected.values() if item is not None}.values())
    outcomes: dict[str, AgentOutcome] = {}
    for start in range(0, len(agents), _BATCH_SIZE):
        batch = agents[start : start + _BATCH_SIZE]
        if change.is_deletion:
            outcomes |= await _delete_batch(ports, actor, batch, dry_run=dry_run)
        else:
            outcomes |= await _change_batch(ports, actor, batch, change, dry_run=dry_run)
    unknown = [name for name, agent in selected.items() if agent is None]
    problems = [AgentOutcome(name, problem=NotFound(f"no such agent: {name}")) for name in unknown]
    return (*(outcomes[agent.id] for agent in agents), *problems)


async def _select(
    ports: Ports, actor: Actor, selection: AgentSelection
) -> Mapping[str, Record | None]:
    """Return the agents by the names that select them; None for an unknown name."""
    if selection.filter is not None:
        agents = await find_agents(ports, actor, selection.filter, MAX_SELECTED)
        return {agent.id: agent for agent in agents}
    names = list(dict.fromkeys(selection.names))
    if len(names) > MAX_SELECTED:
        raise ValidationError(f"{len(names)} agents are selected: at most {MAX_SELECTED} at once")
    ids = [name for name in names if "_" in name]
    slugs = [name for name in names if "_" not in name]
    by_id = await ports.records.get(actor.tenant, RecordType.AGENT, ids) if ids else ()
    keys = [unique_key(actor.tenant, RecordType.AGENT, "slug", slug) for slug in slugs]
    by_slug = await ports.records.get_by_unique_key(keys) if keys else ()
    by_name = dict(zip((*ids, *slugs), (*by_id, *by_slug), strict=True))
    return {name: by_name[name] for name in names}


async def _change_batch(
    ports: Ports, actor: Actor, agents: Sequence[Record], change: BulkChange, *, dry_run: bool
) -> Mapping[str, AgentOutcome]:
    """Change a batch of agents; repeats those that conflicted."""
    outcomes: dict[str, AgentOutcome] = {}
    pending = agents
    for _ in range(MAX_ATTEMPTS):
        outcomes |= await _try_batch(ports, actor, pending, change, dry_run=dry_run)
        busy = [id for id, outcome in outcomes.items() if isinstance(outcome.problem, Busy)]
        if not busy:
            break
        reloaded = await ports.records.get(actor.tenant, RecordType.AGENT, busy)
        pending = [agent for agent in reloaded if agent is not None]
        for id in set(busy) - {agent.id for agent in pending}:
            outcomes[id] = replace(outcomes[id], problem=NotFound(f"no such agent: {id}"))
    return outcomes


async def _try_batch(
    ports: Ports, actor: Actor, agents: Sequence[Record], change: BulkChange, *, dry_run: bool
) -> Mapping[str, AgentOutcome]:
    revisions = await single.load_expected_revisions(ports, actor.tenant)
    rules = await load_rules(ports, actor.tenant)
    fields = await single.resolve_references(ports, actor, change.fields)
    outcomes = {agent.id: _outcome(agent) for agent in agents}
    updates: list[AgentUpdate] = []
    for agent in agents:
        try:
            require_full_access(actor, agent)
            current = agent_from_record(agent)
            updated = updated_agent(current, {**fields, **_tag_fields(current.tags, change)})
        except Refusal as refusal:
            outcomes[agent.id] = _outcome(agent, refusal)
            continue
        if updated != current:
            updates.append(AgentUpdate(agent, updated))
    planned = await _plan_each(ports, rules, updates)
    plans = [plan for plan in planned.values() if isinstance(plan, AgentPlan)]
    refusals = {id: plan for id, plan in planned.items() if isinstance(plan, Refusal)}
    effects = await compare_files(ports, rules.policy.classes, plans) if dry_run else {}
    expected = (*revisions, *rules.collection_revisions)
    commits = [(plan.change, plan.drafts) for plan in plans]
    results: Sequence[Refusal | None] = [None] * len(plans)
    if not dry_run:
        results = await commit_each(ports, actor, CHANGE_REASON, commits, expected)
    for plan, problem in zip(plans, results, strict=True):
        done = _outcome(plan.existing, problem, changed=problem is None)
        outcomes[plan.existing.id] = replace(
            done, effects=effects.get(plan.existing.id, ChangeEffects())
        )
    for id, problem in refusals.items():
        outcomes[id] = replace(outcomes[id], problem=problem)
    return outcomes


def _tag_fields(tags: Sequence[str], change: BulkChange) -> Mapping[str, Any]:
    if not change.add_tags and not change.remove_tags:
        return {}
    return {"tags": sorted((set(tags) | set(change.add_tags)) - set(change.remove_tags))}


async def _plan_each(
    ports: Ports, rules: TenantRules, updates: Sequence[AgentUpdate]
) -> Mapping[str, AgentPlan | Refusal]:
    """Plan all together; a batch with a refusal is halved until it stands alone."""
    try:
        plans = await plan_changes(ports, rules, updates)
    except Busy:
        raise
    except Refusal as refusal:
        if len(updates) == 1:
            return {updates[0].existing.id: refusal}
        middle = len(updates) // 2
        first = await _plan_each(ports, rules, updates[:middle])
        return {**first, **await _plan_each(ports, rules, updates[middle:])}
    return {plan.existing.id: plan for plan in plans}


async def _delete_batch(
    ports: Ports, actor: Actor, agents: Sequence[Record], *, dry_run: bool
) -> Mapping[str, AgentOutcome]:
    effects = await count_erased(ports, actor.tenant, agents) if dry_run else {}
    outcomes: dict[str, AgentOutcome] = {}
    for agent in agents:
        try:
            require_full_access(actor, agent)
            if not dry_run:
                await single.delete(ports, actor, agent.id)
        except Refusal as refusal:
            outcomes[agent.id] = _outcome(agent, refusal)
            continue
        done = _outcome(agent, changed=True)
        outcomes[agent.id] = replace(done, effects=effects.get(agent.id, ChangeEffects()))
    return outcomes


def _outcome(
    agent: Record, problem: Refusal | None = None, *, changed: bool = False
) -> AgentOutcome:
    fields = agent_from_record(agent)
    return AgentOutcome(agent.id, fields.slug, fields.name, changed, problem)
