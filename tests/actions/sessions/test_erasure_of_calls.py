"""Deleting a session deletes the approvals of calls that name only a run of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.actions.searchable_store import STORES, SearchableStore, open_searchable_store
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sessions import sessions
from carrel.actions.sessions.erasure import delete_session
from carrel.core.runs import Audience

pytestmark = pytest.mark.anyio

SECRET = "zanzibarquince"
SESSION, OTHER = (f"5f0c8a52-2f5e-4d3c-9f10-00000000000{n}" for n in (1, 2))


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[SearchableStore]:
    async with open_searchable_store(request, tmp_path) as opened:
        yield opened


async def test_calls_that_name_only_a_run_of_a_deleted_session_leave_no_text(
    store: SearchableStore,
) -> None:
    ports, (_, owner) = store.ports, await create_tenant(store.ports)
    agent = await agents.create(ports, owner, NewAgent("cook", "Cook"))

    async def call_in_run(session: str | None, text: str) -> str:
        """Leave a text in an answered and in an open approval; return the run."""
        run = await runs.start(ports, owner, RunRequest(agent="cook", session=session))
        for n in range(2):
            request = ApprovalRequest(
                agent=agent.id,
                tool="bash",
                arguments={"command": f"{text} {n}"},
                mode=Audience.MAIN,
                run=run.id,
                call=f"call-{n}",
            )
            approval = await approvals.request_approval(ports, owner, request)
        await approvals.answer(ports, owner, approval.id, False, f"never {text}")
        return run.id

    for id in (SESSION, OTHER):
        await sessions.start(ports, owner, "cook", id=id)
    await call_in_run(SESSION, SECRET)
    remaining = {await call_in_run(OTHER, "ordinary"), await call_in_run(None, "ordinary")}
    assert "record" in await store.find_text(SECRET)

    await delete_session(ports, owner, "cook", SESSION)

    assert await store.find_text(SECRET) == []
    listed = (await approvals.list_approvals(ports, owner)).items
    assert {approval.run for approval in listed} == remaining
