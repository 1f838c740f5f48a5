"""Who may read an agent's git history, and when it exists."""

from __future__ import annotations

import pytest
from tests.support.git_agent import SOUL, GitAgent
from tests.support.tenants import add_person, create_tenant

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.git import history as git_history
from carrel.core.access import Actor, CredentialKind, Permission
from carrel.core.errors import Forbidden, NotFound
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def test_git_history_needs_access_to_the_agent_and_git_enabled(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.put(SOUL, "one")
    _, stranger = await create_tenant(ports, "globex")
    with pytest.raises(NotFound):
        await git_history.refresh(ports, stranger, git_agent.scope.name)
    other = await agents.create(ports, git_agent.owner, NewAgent("other", "Other"))
    for name in ("other", other.id, "missing"):
        with pytest.raises(NotFound):
            await git_history.load_history(ports, git_agent.owner, name)
    _, member = await add_person(ports, git_agent.owner, "bob")
    with pytest.raises(Forbidden):
        await git_history.load_history(ports, member, "marco")
    await agents.patch(ports, git_agent.owner, "marco", {"is_shared": True})
    assert (await git_history.load_history(ports, member, "marco")).commits
    bound = Actor(git_agent.owner.tenant, "key_1", kind=CredentialKind.AGENT, agent=other.id)
    with pytest.raises(NotFound):
        await git_history.load_history(ports, bound, "marco")
    reader = Actor(git_agent.owner.tenant, "key_2", frozenset({Permission.WORKSPACE_READ}))
    with pytest.raises(Forbidden):
        await git_history.checkpoint(ports, reader, "marco", "x")
    with pytest.raises(Forbidden):
        await git_history.load_history(
            ports, Actor(git_agent.owner.tenant, "key_3", frozenset()), "marco"
        )
    await git_agent.enable(False)
    with pytest.raises(NotFound):
        await git_history.advertise_refs(ports, git_agent.owner, "marco")
