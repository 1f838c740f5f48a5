"""What prompts depend on beside the files: of an agent as of this moment, of a run as it began."""

from __future__ import annotations

from carrel.actions.overlay.agent_layers import AgentLayers
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.actions.timezones import day
from carrel.core.agents.config import AgentConfig, allows, config_of
from carrel.core.identifiers import Scope, ScopeKind, Stack
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.workspace_notes import WorkspaceNotes, workspace_notes
from carrel.core.runs import Audience, Run
from carrel.core.sandbox.tool_access import available_tool_names
from carrel.ports import Ports


async def current_prompt_inputs(
    ports: Ports, agent_layers: AgentLayers, mode: Audience
) -> PromptInputs:
    """Raises Missing where a workspace or sandbox is gone that the agent's config refers to."""
    agent = agent_layers.agent
    config = config_of(agent.body.get("config") or {})
    today = day(ports.clock.now(), config.timezone)
    notes = await _harness(ports, agent.tenant, config)
    return PromptInputs(
        *(mode, today, config.extra_docs, config.prompt_chars, config.file_chars), harness=notes
    )


async def _harness(ports: Ports, tenant: str, config: AgentConfig) -> WorkspaceNotes:
    if not config.workspaces:
        return WorkspaceNotes()
    hands = await load_tool_access(ports, tenant, config)
    tools = [
        tool for tool in available_tool_names(config, hands) if allows(config.allowed_tools, tool)
    ]
    return workspace_notes(hands, tools)


def run_prompt_inputs(run: Run) -> PromptInputs:
    """What the prompt of a run depends on beside its files, as it was when it began."""
    return PromptInputs.of(run.variables, run.mode, day(run.started, None))


def attached(tenant: str, inputs: PromptInputs) -> Stack:
    """The scopes of the workspaces that a wish tells of, each once."""
    return tuple(Scope(tenant, ScopeKind.WORKSPACE, id) for id in inputs.harness.workspaces)
