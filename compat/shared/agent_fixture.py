"""An agent with a sandbox and a workspace, for the end-to-end runs of the runtimes."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from carrel_client import Client

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]
SOUL = "You are kind, and brief."


@dataclass(frozen=True)
class AgentFixture:
    """Names of an agent and of what it has."""

    slug: str
    workspace: str
    """Attached to the agent."""
    state: str
    """Workspace that the agent's tools do not reach."""


def create_agent(client: Client, permission_mode: str = "edit") -> AgentFixture:
    """An agent whose commands need an approval, unless the mode is ``bypass``."""
    slug = f"agent-{secrets.token_hex(4)}"
    sandbox = client.sandboxes.create("usual", {"permissionMode": permission_mode})
    workspace = client.workspaces.create("site")
    attached = [{"name": "site", "workspaceId": workspace.id}]
    config = {"sandbox": sandbox.id, "workspaces": attached}
    client.agents.create(slug, slug.title(), config=config)
    client.agent(slug).put("SOUL.md", SOUL)
    return AgentFixture(slug, workspace.id, client.workspaces.create("state").id)


def answer_approvals(client: Client, agent: str, approved: bool = True) -> int:
    """Answer all open approvals of an agent; returns how many there were."""
    approvals = client.approvals.list(status="requested", agent=agent)
    for approval in approvals:
        client.approvals.answer(approval.id, approved, "by the test")
    return len(approvals)
