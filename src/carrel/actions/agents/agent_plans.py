"""Plans of changes of agents: the record and, in the same commit, the files generated from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.overlay.agent_layers import load_many_placeholder_values
from carrel.actions.overlay.managed_files import (
    AgentWithVariables,
    draft_identity_file,
    draft_user_files,
)
from carrel.actions.overlay.path_clashes import check_new_stacks
from carrel.actions.policy.tenant_rules import TenantRules
from carrel.actions.records import NO_DRAFTS, FileDrafts, record_after
from carrel.core.agents.agent import AgentRecord, agent_change, agent_from_record
from carrel.core.agents.identity_name import parse_agent_name
from carrel.core.agents.layers import build_stack
from carrel.core.agents.tags import parse_tags
from carrel.core.store.record import Record, RecordChange
from carrel.core.text_validation import parse_unreserved_slug
from carrel.ports import Ports

CHANGE_REASON: Final = "change an agent"


class AgentUpdate(Struct, frozen=True):
    """Agent and the fields that it will have."""

    existing: Record
    agent: AgentRecord


class AgentPlan(Struct, frozen=True):
    """Commit of one agent's update."""

    existing: Record
    change: RecordChange
    drafts: FileDrafts = NO_DRAFTS

    @property
    def changed(self) -> Record:
        """The agent after the change."""
        return record_after(self.change, 0, self.existing)


def updated_agent(current: AgentRecord, fields: Mapping[str, Any]) -> AgentRecord:
    """Return the agent with the given fields, valid ones. Raises ValidationError."""
    agent = replace(current, **fields)
    if "slug" in fields:
        parse_unreserved_slug(agent.slug)
    if "name" in fields:
        agent = replace(agent, name=parse_agent_name(agent.name))
    if "tags" in fields:
        agent = replace(agent, tags=parse_tags(agent.tags))
    return replace(agent, user_file=agent.user_file or agent.human_pair_id is not None)


async def plan_changes(
    ports: Ports, rules: TenantRules, updates: Sequence[AgentUpdate]
) -> tuple[AgentPlan, ...]:
    """Plan each update; the number of queries depends only on the number of new names.

    Raises Conflict and WorkspaceTooLarge, which name one of the agents.
    """
    changes = {
        item.existing.id: agent_change(
            item.existing.tenant, item.existing.id, item.agent, item.existing
        )
        for item in updates
    }
    plans = [AgentPlan(item.existing, changes[item.existing.id]) for item in updates]
    drafts = {
        plan.existing.id: await _identity_drafts(ports, rules, plan, item.agent)
        for plan, item in zip(plans, updates, strict=True)
    }
    await _add_user_files(ports, rules, plans, drafts)
    moved = [plan.changed for plan in plans if _is_moved(plan)]
    checks = await check_new_stacks(ports, moved, rules.policy.classes)
    for agent, path_checks in zip(moved, checks, strict=True):
        drafts[agent.id] += FileDrafts(path_checks=tuple(path_checks))
    return tuple(replace(plan, drafts=drafts[plan.existing.id]) for plan in plans)


def _is_moved(plan: AgentPlan) -> bool:
    old, new = agent_from_record(plan.existing), agent_from_record(plan.changed)
    return old.template_id != new.template_id


async def _identity_drafts(
    ports: Ports, rules: TenantRules, plan: AgentPlan, agent: AgentRecord
) -> FileDrafts:
    if agent_from_record(plan.existing).name == agent.name:
        return NO_DRAFTS
    return await draft_identity_file(ports, rules, plan.changed, agent.name)


async def _add_user_files(
    ports: Ports, rules: TenantRules, plans: Sequence[AgentPlan], drafts: dict[str, FileDrafts]
) -> None:
    """Add USER.md of the agents whose name, human or template changes."""
    agents = [plan.changed for plan in plans if _changes_user_file(plan)]
    if not agents:
        return
    values = await load_many_placeholder_values(ports, agents[0].tenant, agents)
    items = [
        AgentWithVariables(agent, variables)
        for agent, variables in zip(agents, values, strict=True)
    ]
    joint = await draft_user_files(ports, rules, items)
    for agent in agents:
        stack = frozenset(build_stack(agent))
        drafts[agent.id] += FileDrafts(
            tuple(write for write in joint.writes if write.scope == build_stack(agent)[0]),
            tuple(expect for expect in joint.expects if expect.scope in stack),
        )


def _changes_user_file(plan: AgentPlan) -> bool:
    old, new = agent_from_record(plan.existing), agent_from_record(plan.changed)
    return new.user_file and (old.name, old.human_pair_id, old.template_id) != (
        new.name,
        new.human_pair_id,
        new.template_id,
    )
