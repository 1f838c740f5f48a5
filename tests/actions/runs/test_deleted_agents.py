"""Runs of a deleted agent: status and times stay, content is gone."""

from __future__ import annotations

import pytest

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.runs import diff, runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import RunStatus
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ADA, SOUL = Actor("acme", "ada"), Path("SOUL.md")


async def test_a_run_of_a_deleted_agent_keeps_its_status_and_loses_its_content(
    anywhere: Ports,
) -> None:
    ports = anywhere
    agent = await agents.create(ports, ADA, NewAgent("marco", "Marco"))
    await files.put(ports, (Scope("acme", ScopeKind.AGENT, agent.id),), SOUL, b"x", ADA)
    started = [await runs.start(ports, ADA, RunRequest(agent="marco")) for _ in range(2)]
    await runs.update(ports, ADA, started[0].id, status=RunStatus.COMPLETED)
    await agents.delete(ports, ADA, "marco")
    ended = [await runs.get(ports, ADA, run.id) for run in started]
    assert [run.status for run in ended] == [RunStatus.COMPLETED, RunStatus.CANCELLED]
    for run in ended:
        for request in (
            snapshots.load_manifest(ports, run),
            snapshots.read_file(ports, run, SOUL),
            diff.diff(ports, run),
        ):
            with pytest.raises(NotFound, match="or its agent was"):
                await request
    with pytest.raises(Conflict, match="or its agent was"):
        await runs.start(ports, ADA, RunRequest(replay_of=started[0].id))
