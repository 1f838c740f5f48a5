"""Prompt inputs besides the files: current for an agent, frozen for a run."""

from __future__ import annotations

from carrel.actions.overlay.agent_layers import AgentLayers
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.actions.timezones import local_date
from carrel.core.agents.agent import agent_config
from carrel.core.agents.config import AgentConfig, is_allowed
from carrel.core.identifiers import Scope, ScopeKind, Stack
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.workspace_notes import WorkspaceNotes, workspace_notes
from carrel.core.runs import Audience, Run
from carrel.core.sandbox.tool_access import available_tool_names
from carrel.core.skills.prompt_index import SKILL_TOOL
from carrel.ports import Ports


async def load_prompt_inputs(
    ports: Ports, agent_layers: AgentLayers, mode: Audience
) -> PromptInputs:
    """Load an agent's current prompt inputs.

    Raises NotFound if the agent's config refers to a deleted workspace or sandbox.
    """
    agent = agent_layers.agent
    config = agent_config(agent)
    today = local_date(ports.clock.now(), config.timezone)
    notes = await _load_workspace_notes(ports, agent.tenant, config)
    can_read_skills = is_allowed(config.allowed_tools, SKILL_TOOL)
    return PromptInputs(
        *(mode, today, config.extra_docs, config.prompt_chars, config.file_chars),
        skills_chars=config.skills_chars if can_read_skills else 0,
        workspace_notes=notes,
    )


async def _load_workspace_notes(ports: Ports, tenant: str, config: AgentConfig) -> WorkspaceNotes:
    if not config.workspaces:
        return WorkspaceNotes()
    tool_access = await load_tool_access(ports, tenant, config)
    tools = [
        tool
        for tool in available_tool_names(config, tool_access)
        if is_allowed(config.allowed_tools, tool)
    ]
    return workspace_notes(tool_access, tools)


def run_prompt_inputs(run: Run) -> PromptInputs:
    """Return the prompt inputs of a run, as of its start."""
    return PromptInputs.from_run_variables(
        run.variables, run.mode, local_date(run.started_at, None)
    )


def attached_scopes(tenant: str, inputs: PromptInputs) -> Stack:
    """Return the scopes of the workspaces that the prompt inputs mention."""
    return tuple(
        Scope(tenant, ScopeKind.WORKSPACE, id) for id in inputs.workspace_notes.workspace_ids
    )
