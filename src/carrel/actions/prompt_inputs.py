"""What prompts depend on beside the files: of an agent as of this moment, of a run as it began."""

from __future__ import annotations

from carrel.actions.overlay.agent_layers import Lineage
from carrel.actions.sandbox.tool_access import hands_of
from carrel.actions.timezones import day
from carrel.core.agents.config import Config, allows, config_of
from carrel.core.identifiers import Kind, Scope, Stack
from carrel.core.prompt.inputs import Wish
from carrel.core.prompt.workspace_notes import Harness, harness_of
from carrel.core.runs import Mode, Run
from carrel.core.sandbox.tool_access import surface
from carrel.ports import World


async def wish_now(world: World, lineage: Lineage, mode: Mode) -> Wish:
    """Raises Missing where a workspace or sandbox is gone that the agent's config refers to."""
    agent = lineage.agent
    config = config_of(agent.body.get("config") or {})
    today = day(world.clock.now(), config.timezone)
    harness = await _harness(world, agent.tenant, config)
    return Wish(
        *(mode, today, config.extra_docs, config.prompt_chars, config.file_chars), harness=harness
    )


async def _harness(world: World, tenant: str, config: Config) -> Harness:
    if not config.workspaces:
        return Harness()
    hands = await hands_of(world, tenant, config)
    tools = [tool for tool in surface(config, hands) if allows(config.allowed_tools, tool)]
    return harness_of(hands, tools)


def wish_of(run: Run) -> Wish:
    """What the prompt of a run depends on beside its files, as it was when it began."""
    return Wish.of(run.variables, run.mode, day(run.started, None))


def attached(tenant: str, wish: Wish) -> Stack:
    """The scopes of the workspaces that a wish tells of, each once."""
    return tuple(Scope(tenant, Kind.WORKSPACE, id) for id in wish.harness.workspaces)
