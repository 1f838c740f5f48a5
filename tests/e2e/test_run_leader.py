"""One process of a store makes silent runs abandoned, and another takes over when it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as File

import pytest
from tests.support.stores import TravelClock
from tests.support.tenants import create_tenant

from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.core.runs import RunStatus
from carrel.settings import load
from carrel.wiring.background import abandon_runs_as_leader
from carrel.wiring.catalog import leader_lock
from carrel.wiring.ports import open_ports

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_process_without_the_lock_abandons_no_runs(
    request: pytest.FixtureRequest, tmp_path: File, kind: str
) -> None:
    location = {"data": str(tmp_path), "run_lease_minutes": 5}
    if kind == "postgres":
        location["database_url"] = request.getfixturevalue("postgres_url")
    settings = load(location)
    clock = TravelClock()
    async with open_ports(settings) as opened:
        ports = replace(opened.ports, clock=clock)
        _, owner = await create_tenant(ports)
        run = await runs.start(ports, owner, RunRequest("work"))
        clock.ahead += 6 * 60_000
        first, second = (leader_lock(settings, "runs") for _ in range(2))
        assert await first.try_acquire()

        await abandon_runs_as_leader(ports, second)
        assert (await runs.get(ports, owner, run.id)).status is RunStatus.RUNNING

        await first.release()
        await abandon_runs_as_leader(ports, second)
        assert (await runs.get(ports, owner, run.id)).status is RunStatus.ABANDONED
        await second.release()
